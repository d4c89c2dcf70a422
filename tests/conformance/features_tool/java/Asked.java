package org.apache.kafka.tools;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Runs kafka-features again and again: a line of arguments in, a line of what it said out. */
public class Asked {
    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        // What the logging facade has to say, it says once, and not of the tool.
        org.slf4j.LoggerFactory.getILoggerFactory();
        out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            ByteArrayOutputStream failed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(failed, true, StandardCharsets.UTF_8));
            int code = FeatureCommand.mainNoExit(line.split("\t"));
            System.out.flush();
            System.err.flush();
            out.println(code + " " + encoded(said) + " " + encoded(failed));
        }
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return "=" + Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
