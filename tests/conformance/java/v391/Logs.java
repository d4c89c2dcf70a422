package org.apache.kafka.controller;

import org.apache.kafka.common.utils.LogContext;

/** The context of log lines, whose package is this one up to 4.3. */
public final class Logs {
    private Logs() {
    }

    public static LogContext context() {
        return new LogContext();
    }
}
