package org.apache.kafka.controller;

import java.util.function.IntPredicate;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.MetadataVersion;

/** How a builder is made in 3.9. */
final class Builders {
    private Builders() {
    }

    static PartitionChangeBuilder of(
        PartitionRegistration partition, IntPredicate usable, int minIsr, boolean elr, boolean raises
    ) {
        return new PartitionChangeBuilder(
            partition, new Uuid(1, 1), 0, usable, MetadataVersion.IBP_3_9_IV0, minIsr)
            .setEligibleLeaderReplicasEnabled(elr)
            .setZkMigrationEnabled(raises);
    }
}
