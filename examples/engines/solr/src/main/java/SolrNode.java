import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/** One node of Solr on loopback, from its packages: the engine's own code, without a download of it. */
public final class SolrNode {
    private SolrNode() {}

    /** Arguments: the port, and a folder with solr.xml and the cores. */
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        new JettySolrRunner(arguments[1], JettyConfig.builder().setPort(port).build()).start();
        Thread.currentThread().join();
    }
}
