package org.apache.kafka.controller;

import java.util.function.IntPredicate;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.MetadataVersion;

/** How a builder is made in 4.3. */
final class Builders {
    private Builders() {
    }

    static PartitionChangeBuilder of(
        PartitionRegistration partition, IntPredicate usable, int minIsr, boolean elr, boolean raises
    ) {
        MetadataVersion version = raises
            ? MetadataVersion.IBP_3_5_IV2
            : MetadataVersion.latestProduction();
        return new PartitionChangeBuilder(
            partition, new Uuid(1, 1), 0, usable, version, minIsr, elr);
    }
}
