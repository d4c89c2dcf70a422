package org.apache.kafka.tools;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/** Runs the tools again and again: a line with a tool and its arguments in, its output out. */
public class PartitionTools {
    private static class Ended extends Error {
        final int code;

        Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        org.slf4j.LoggerFactory.getILoggerFactory();
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream failed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(failed, true, StandardCharsets.UTF_8));
            String[] words = line.split("\t");
            String[] arguments = Arrays.copyOfRange(words, 1, words.length);
            int code = 0;
            try {
                if (words[0].equals("elect")) {
                    code = LeaderElectionCommand.mainNoExit(arguments);
                } else {
                    ReassignPartitionsCommand.main(arguments);
                }
            } catch (Ended ended) {
                code = ended.code;
            }
            System.out.flush();
            System.err.flush();
            out.println(code + " " + encoded(printed) + " " + encoded(failed));
        }
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return "=" + Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
