package rankduel;

import java.util.List;
import java.util.Map;
import java.util.Set;

/** Makes the rankings of some rankers together, such as with one request to the search engine. */
@FunctionalInterface
public interface Rankings {
    /**
     * The document ids of each of these rankers, best first. Leave one out that failed. Others may
     * be in the map, too: with the control's, a fallback needs no second call.
     */
    Map<String, List<String>> of(Set<String> rankers) throws Exception;
}
