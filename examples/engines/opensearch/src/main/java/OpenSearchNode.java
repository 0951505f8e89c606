import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch on loopback, from its packages: the engine's own code, without a download of it. */
public final class OpenSearchNode extends Node {
    private OpenSearchNode(Settings settings) {
        super(
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node-1"),
                List.of(Netty4Plugin.class, CommonAnalysisPlugin.class, PainlessPlugin.class),
                false);
    }

    /** Arguments: the port, and a folder for the data. */
    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
                .put("path.home", arguments[1])
                .put("cluster.name", "example")
                .put("node.name", "node-1")
                .put("discovery.type", "single-node")
                .put("network.host", "127.0.0.1")
                .put("http.port", arguments[0])
                .put("transport.port", "0")
                .put("http.type", "netty4")
                .put("transport.type", "netty4")
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        new OpenSearchNode(settings).start();
        Thread.currentThread().join();
    }
}
