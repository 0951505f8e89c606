package shop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Products that are made up, the same ones each time. */
final class Catalogue {
    static final List<String> COLOURS = List.of("red", "blue", "green", "black", "white", "grey");
    static final List<String> KINDS = List.of("shoes", "jacket", "shirt", "trousers", "hat", "bag", "scarf", "socks");
    private static final List<String> STUFFS = List.of("leather", "cotton", "linen", "wool", "canvas");
    private static final List<String> SIZES = List.of("s", "m", "l");

    private Catalogue() {}

    /**
     * Three sizes of each product. The title says what it is. The description names other kinds and
     * colours more often: a ranking that reads both alike is misled.
     */
    static List<Map<String, Object>> documents(int products) {
        Random random = new Random(7);
        List<Map<String, Object>> documents = new ArrayList<>();
        for (int product = 0; product < products; product += 1) {
            String kind = one(KINDS, random);
            String title = one(COLOURS, random) + " " + one(STUFFS, random) + " " + kind;
            String other = one(KINDS, random);
            String colour = one(COLOURS, random);
            String description = "Goes with a " + colour + " " + other + ". Wear it with " + other + " in " + colour
                    + ", or with a " + one(COLOURS, random) + " " + one(KINDS, random) + ". Number " + product + ".";
            int popularity = random.nextInt(1000);
            for (String size : SIZES) {
                Map<String, Object> document = new LinkedHashMap<>();
                document.put("id", "p" + product + "-" + size);
                document.put("style", "p" + product);
                document.put("title", title);
                document.put("description", description);
                document.put("category", kind);
                document.put("popularity", popularity);
                documents.add(document);
            }
        }
        return documents;
    }

    private static String one(List<String> list, Random random) {
        return list.get(random.nextInt(list.size()));
    }
}
