import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import software.amazon.msk.auth.iam.IAMClientCallbackHandler;
import software.amazon.msk.auth.iam.IAMLoginModule;
import software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler;
import software.amazon.msk.auth.iam.internals.AWS4SignedPayloadGenerator;
import software.amazon.msk.auth.iam.internals.IAMSaslClient;

/**
 * The messages of aws-msk-iam-auth. Each line of input is a request, and one line answers it:
 * "sign HOST" gives the message to a broker, "token" that of OAUTHBEARER, each in base64, and
 * "accept HOST ANSWER" whether the client takes a broker's answer, in base64: "complete" or why not.
 */
public final class IamMessages {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null;) {
            String[] parts = line.split(" ", -1);
            System.out.println(switch (parts[0]) {
                case "sign" -> Base64.getEncoder().encodeToString(sent(client(parts[1])));
                case "token" -> token();
                default -> accepted(parts[1], Base64.getDecoder().decode(parts[2]));
            });
        }
    }

    private static IAMSaslClient client(String host) throws Exception {
        var handler = new IAMClientCallbackHandler();
        handler.configure(Map.of(), IAMLoginModule.MECHANISM, entry(IAMLoginModule.class));
        return new IAMSaslClient(
            IAMLoginModule.MECHANISM, handler, host, new AWS4SignedPayloadGenerator());
    }

    private static List<AppConfigurationEntry> entry(Class<?> module) {
        return List.of(new AppConfigurationEntry(
            module.getName(), AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of()));
    }

    private static byte[] sent(IAMSaslClient client) throws Exception {
        return client.evaluateChallenge(new byte[0]);
    }

    private static String token() throws Exception {
        var handler = new IAMOAuthBearerLoginCallbackHandler();
        handler.configure(Map.of(), OAuthBearerLoginModule.OAUTHBEARER_MECHANISM,
            entry(OAuthBearerLoginModule.class));
        var callback = new OAuthBearerTokenCallback();
        handler.handle(new Callback[] {callback});
        return callback.token().value();
    }

    private static String accepted(String host, byte[] answer) throws Exception {
        IAMSaslClient client = client(host);
        sent(client);
        try {
            client.evaluateChallenge(answer);
            return client.isComplete() ? "complete" : "incomplete";
        } catch (Exception error) {
            return "refused";
        }
    }
}
