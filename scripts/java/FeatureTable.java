import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints the feature levels of one release of Kafka as one JSON document. It calls Kafka's classes
 * by reflection only, so one compilation works with every release from 3.3 on.
 */
public final class FeatureTable {
    private static final String COMMON = "org.apache.kafka.server.common.";

    public static void main(String[] arguments) throws Exception {
        Class<?> versions = Class.forName(COMMON + "MetadataVersion");
        Map<String, Object> out = new TreeMap<>();
        out.put("levels", metadataLevels(versions));
        out.put("minimum", level(constant(versions, "MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION")));
        out.put("bootstrap", level(constant(
            versions, "MINIMUM_BOOTSTRAP_VERSION", "MINIMUM_VERSION")));
        out.put("supported", advertised(false));
        out.put("unstable", advertised(true));
        out.put("features", features());
        System.out.println(json(out));
    }

    private static List<Object> metadataLevels(Class<?> versions) throws Exception {
        List<Object> levels = new ArrayList<>();
        Object[] all = versions.getEnumConstants();
        for (Object version : all) {
            if (level(version) < 1) {
                continue;
            }
            Map<String, Object> entry = new TreeMap<>();
            entry.put("level", level(version));
            entry.put("name", call(version, "version"));
            entry.put("release", call(version, "shortVersion"));
            entry.put("changes_metadata", call(version, "didMetadataChange"));
            entry.put("floor", floor(versions, all, version));
            entry.put("gates", gates(version));
            levels.add(entry);
        }
        return levels;
    }

    /** The lowest level to which a downgrade is lossless by Kafka's own rule. */
    private static int floor(Class<?> versions, Object[] all, Object from) throws Exception {
        Method changed = versions.getDeclaredMethod("checkIfMetadataChanged", versions, versions);
        changed.setAccessible(true);
        int lowest = level(from);
        for (Object to : all) {
            int level = level(to);
            if (level >= 1 && level < lowest && !(boolean) changed.invoke(null, from, to)) {
                lowest = level;
            }
        }
        return lowest;
    }

    /** The methods of a metadata.version that other classes call: flags and request versions. */
    private static Map<String, Object> gates(Object version) throws Exception {
        Map<String, Object> gates = new TreeMap<>();
        for (Method method : version.getClass().getMethods()) {
            boolean isFlag = method.getReturnType() == boolean.class
                && method.getName().matches("is\\w+(Supported|Required\\w*)");
            boolean isVersion = method.getReturnType() == short.class
                && method.getName().endsWith("Version");
            if (method.getParameterCount() > 0 || !(isFlag || isVersion)) {
                continue;
            }
            try {
                gates.put(method.getName(), method.invoke(version));
            } catch (InvocationTargetException e) {
                gates.put(method.getName(), null);  // "... is not supported in MetadataVersion ..."
            }
        }
        return gates;
    }

    private static Map<String, Object> advertised(boolean unstable) throws Exception {
        Class<?> quorum = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        for (Method method : quorum.getDeclaredMethods()) {
            if (method.getName().matches("default(Supported)?FeatureMap")) {
                Object map = method.getParameterCount() == 0
                    ? method.invoke(null) : method.invoke(null, unstable);
                Map<String, Object> ranges = new TreeMap<>();
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) map).entrySet()) {
                    Object range = entry.getValue();
                    ranges.put((String) entry.getKey(),
                        List.of(call(range, "min"), call(range, "max")));
                }
                return ranges;
            }
        }
        throw new IllegalStateException("QuorumFeatures has no default map of features");
    }

    private static Map<String, Object> features() throws Exception {
        Map<String, Object> levelsByFeature = new TreeMap<>();
        Class<?> all;
        try {
            all = Class.forName(COMMON + "Feature");
        } catch (ClassNotFoundException missing) {
            try {
                all = Class.forName(COMMON + "Features");
            } catch (ClassNotFoundException alsoMissing) {
                return levelsByFeature;
            }
        }
        if (!all.isEnum()) {
            return levelsByFeature;  // before 3.8 a class of that name held the finalized levels
        }
        for (Object feature : all.getEnumConstants()) {
            String name = (String) call(feature, "featureName");
            if (name.contains("test.")) {
                continue;
            }
            List<Object> levels = new ArrayList<>();
            for (Object version : (Object[]) call(feature, "featureVersions")) {
                Map<String, Object> entry = new TreeMap<>();
                entry.put("level", level(version));
                entry.put("name", version.toString());
                entry.put("bootstrap", level(call(version, "bootstrapMetadataVersion")));
                entry.put("dependencies", new TreeMap<>((Map<?, ?>) call(version, "dependencies")));
                levels.add(entry);
            }
            levelsByFeature.put(name, levels);
        }
        return levelsByFeature;
    }

    private static Object constant(Class<?> type, String name, String fallback) throws Exception {
        try {
            return type.getField(name).get(null);
        } catch (NoSuchFieldException e) {
            return type.getField(fallback).get(null);
        }
    }

    private static int level(Object version) throws Exception {
        return ((Number) call(version, "featureLevel")).intValue();
    }

    private static Object call(Object target, String name) throws Exception {
        Method method = target.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(target);
    }

    private static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            List<String> parts = new ArrayList<>();
            map.forEach((key, item) -> parts.add(json(key) + ":" + json(item)));
            return "{" + String.join(",", parts) + "}";
        }
        if (value instanceof List<?> list) {
            return "[" + String.join(",", list.stream().map(FeatureTable::json).toList()) + "]";
        }
        return value instanceof String ? "\"" + value + "\"" : String.valueOf(value);
    }
}
