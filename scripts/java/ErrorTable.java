import java.lang.reflect.Method;

/** Prints Kafka's errors: code, name, class of the exception and text, with tabs between. */
public final class ErrorTable {
    public static void main(String[] arguments) throws Exception {
        Class<?> errors = Class.forName("org.apache.kafka.common.protocol.Errors");
        Method code = errors.getMethod("code");
        Method exception = errors.getMethod("exception");
        Method message = errors.getMethod("message");
        for (Object error : errors.getEnumConstants()) {
            Object thrown = exception.invoke(error);
            String name = thrown == null ? "" : thrown.getClass().getSimpleName();
            System.out.println(String.join("\t",
                code.invoke(error).toString(), ((Enum<?>) error).name(), name,
                (String) message.invoke(error)));
        }
    }
}
