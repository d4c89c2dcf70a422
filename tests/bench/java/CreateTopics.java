import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Creates topics by Kafka's own client: a line with a prefix and a count in, nanoseconds out. */
public class CreateTopics {
    public static void main(String[] given) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", given[0]))) {
            admin.describeCluster().nodes().get();
            System.out.println("ready");
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] parts = line.split(" ");
                List<NewTopic> topics = IntStream.range(0, Integer.parseInt(parts[1]))
                    .mapToObj(number -> new NewTopic(parts[0] + "-" + number, 1, (short) 1))
                    .toList();
                long began = System.nanoTime();
                admin.createTopics(topics).all().get();
                System.out.println(System.nanoTime() - began);
            }
        }
    }
}
