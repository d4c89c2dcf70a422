package org.apache.kafka.raft;

/** The state of a replica, in releases with pre-votes. */
final class States {
    private States() {
    }

    static String name(QuorumState quorum) {
        if (quorum.isLeader()) return "leader";
        if (quorum.isCandidate()) return "candidate";
        if (quorum.isProspective()) return "prospective";
        if (quorum.isFollower()) return "follower";
        if (quorum.isResigned()) return "resigned";
        return "unattached";
    }
}
