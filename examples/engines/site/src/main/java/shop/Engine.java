package shop;

import java.util.List;
import java.util.Map;
import java.util.Set;

/** A search engine with the products of the shop. A product has sizes, and a page shows it once. */
interface Engine {
    /** The version of the shop's own ranking: shown when there is no answer in time. */
    String CONTROL = "bm25";
    /** As deep as anybody pages. */
    int DEPTH = 100;
    /** Within the engine; a ranking that it cut short is left out. */
    int MILLISECONDS = Integer.getInteger("milliseconds", 500);

    /** A query with the filter that the searcher chose, or null; the unit reads one copy of the index. */
    record Query(String text, String category, String unit) {}

    /** Products by ranker, best first, and how many matches each category has for the control. */
    record Found(Map<String, List<String>> rankings, Map<String, Integer> categories) {}

    record Product(String title, String category) {}

    /** Creates the index if it is missing, and adds the documents: one for each size of a product. */
    void add(List<Map<String, Object>> documents) throws Exception;

    /** The rankings of all these rankers at the same time. */
    Found search(Set<String> rankers, Query query) throws Exception;

    /** Products by key, without those that are gone. */
    Map<String, Product> products(List<String> keys) throws Exception;
}
