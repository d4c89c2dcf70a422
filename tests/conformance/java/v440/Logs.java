package org.apache.kafka.controller;

import org.apache.kafka.common.utils.internals.LogContext;

/** The context of log lines, whose package is this one from 4.4 on. */
public final class Logs {
    private Logs() {
    }

    public static LogContext context() {
        return new LogContext();
    }
}
