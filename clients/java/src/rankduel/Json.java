package rankduel;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as Java's own types: {@code Map<String, Object>}, {@code List<Object>}, {@code String},
 * {@code Double}, {@code Boolean} and null. The standard library has no JSON.
 */
final class Json {
    private static final int DEEPEST = 100;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads a text; throws {@code IllegalArgumentException} if it is not JSON. */
    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at < text.length()) {
            throw json.wrong("the end");
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        if (value instanceof Map) {
            return (Map<String, Object>) value;
        }
        throw new IllegalArgumentException("it is not an object");
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        if (value instanceof List) {
            return (List<Object>) value;
        }
        throw new IllegalArgumentException("it is not a list");
    }

    static String string(Object value) {
        if (value instanceof String string) {
            return string;
        }
        throw new IllegalArgumentException("it is not a text");
    }

    static double number(Object value) {
        if (value instanceof Number number) {
            return number.doubleValue();
        }
        throw new IllegalArgumentException("it is not a number");
    }

    static boolean flag(Object value) {
        if (value instanceof Boolean flag) {
            return flag;
        }
        throw new IllegalArgumentException("it is neither true nor false");
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("it is not JSON: there is no " + wanted + " at character " + at);
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at += 1;
        }
    }

    private boolean take(char wanted) {
        space();
        boolean found = at < text.length() && text.charAt(at) == wanted;
        at += found ? 1 : 0;
        return found;
    }

    private void need(char wanted) {
        if (!take(wanted)) {
            throw wrong("'" + wanted + "'");
        }
    }

    private Object value(int depth) {
        if (depth > DEEPEST) {
            throw wrong("end of the nesting");
        }
        space();
        if (take('{')) {
            return members(depth);
        }
        if (take('[')) {
            return items(depth);
        }
        if (at < text.length() && text.charAt(at) == '"') {
            return quoted();
        }
        for (Map.Entry<String, Boolean> word : Map.of("true", true, "false", false).entrySet()) {
            if (text.startsWith(word.getKey(), at)) {
                at += word.getKey().length();
                return word.getValue();
            }
        }
        if (text.startsWith("null", at)) {
            at += 4;
            return null;
        }
        int start = at;
        while (at < text.length() && "+-0123456789.eE".indexOf(text.charAt(at)) >= 0) {
            at += 1;
        }
        try {
            return Double.valueOf(text.substring(start, at));
        } catch (NumberFormatException error) {
            throw wrong("value");
        }
    }

    private Map<String, Object> members(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        if (take('}')) {
            return members;
        }
        do {
            space();
            String name = quoted();
            need(':');
            members.put(name, value(depth + 1));
        } while (take(','));
        need('}');
        return members;
    }

    private List<Object> items(int depth) {
        List<Object> items = new ArrayList<>();
        if (take(']')) {
            return items;
        }
        do {
            items.add(value(depth + 1));
        } while (take(','));
        need(']');
        return items;
    }

    private String quoted() {
        need('"');
        StringBuilder found = new StringBuilder();
        while (at < text.length()) {
            char next = text.charAt(at++);
            if (next == '"') {
                return found.toString();
            }
            found.append(next == '\\' ? escaped() : next);
        }
        throw wrong("'\"'");
    }

    private char escaped() {
        if (at >= text.length()) {
            throw wrong("escape");
        }
        char next = text.charAt(at++);
        int plain = "\"\\/bfnrt".indexOf(next);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (next != 'u' || at + 4 > text.length()) {
            throw wrong("escape");
        }
        at += 4;
        try {
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        } catch (NumberFormatException error) {
            throw wrong("escape");
        }
    }

    /** Writes a value of the types above; also every {@code Number} and every {@code Iterable}. */
    static String write(Object value) {
        StringBuilder text = new StringBuilder();
        write(value, text);
        return text.toString();
    }

    private static void write(Object value, StringBuilder text) {
        if (value instanceof Map<?, ?> map) {
            String before = "{";
            for (Map.Entry<?, ?> member : map.entrySet()) {
                text.append(before);
                quote(member.getKey().toString(), text);
                text.append(':');
                write(member.getValue(), text);
                before = ",";
            }
            text.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> items) {
            text.append('[');
            String before = "";
            for (Object item : items) {
                text.append(before);
                write(item, text);
                before = ",";
            }
            text.append(']');
        } else if (value instanceof CharSequence string) {
            quote(string.toString(), text);
        } else if (value instanceof Double number && number == Math.rint(number) && Math.abs(number) < 1e15) {
            text.append(number.longValue());
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            text.append(value);
        } else {
            throw new IllegalArgumentException(value.getClass() + " has no form in JSON");
        }
    }

    private static void quote(String string, StringBuilder text) {
        text.append('"');
        for (char next : string.toCharArray()) {
            if (next == '"' || next == '\\') {
                text.append('\\').append(next);
            } else if (next < ' ') {
                text.append(String.format("\\u%04x", (int) next));
            } else {
                text.append(next);
            }
        }
        text.append('"');
    }
}
