package org.apache.kafka.raft;

/** The state of a replica in Kafka 3.9, which has no pre-votes. */
final class States {
    private States() {
    }

    static String name(QuorumState quorum) {
        if (quorum.isLeader()) return "leader";
        if (quorum.isCandidate()) return "candidate";
        if (quorum.isFollower()) return "follower";
        if (quorum.isResigned()) return "resigned";
        return "unattached";
    }
}
