import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataHandle;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;
import org.deidentifier.arx.metric.Metric.AggregateFunction;

/**
 * Runs ARX on tables that the benchmark wrote, and prints a line of JSON for each run.
 *
 * Arguments: the folder, and the number of rounds. The folder has table.tsv, one hierarchy a column in 0.tsv, 1.tsv, …, and orders.tsv
 * with a line for each order: number of columns, metric, k, share of rows that may be suppressed.
 */
public class _ArxRunner {

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        String[][] table = read(folder.resolve("table.tsv"));
        String[][] orders = read(folder.resolve("orders.tsv"));
        for (int round = 0; round < rounds; round++) {
            for (String[] order : orders) {
                run(folder, table, order, round);
            }
        }
    }

    private static void run(Path folder, String[][] table, String[] order, int round) throws Exception {
        int columns = Integer.parseInt(order[0]);
        Data.DefaultData data = Data.create();
        for (String[] row : table) {
            data.add(java.util.Arrays.copyOf(row, columns));
        }
        for (int column = 0; column < columns; column++) {
            data.getDefinition().setAttributeType(table[0][column], Hierarchy.create(read(folder.resolve(column + ".tsv"))));
        }
        ARXConfiguration configuration = ARXConfiguration.create();
        configuration.addPrivacyModel(new KAnonymity(Integer.parseInt(order[2])));
        configuration.setSuppressionLimit(Double.parseDouble(order[3]));
        configuration.setQualityModel(metric(order[1]));
        ARXAnonymizer anonymizer = new ARXAnonymizer();
        long worked = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        long begun = System.nanoTime();
        ARXResult result = anonymizer.anonymize(data, configuration);
        double milliseconds = (System.nanoTime() - begun) / 1e6;
        double processor = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - worked) / 1e6;
        ARXNode node = result.getGlobalOptimum();
        DataHandle output = result.getOutput(node, false);
        List<Integer> levels = new ArrayList<>();
        for (int column = 0; column < columns; column++) {
            levels.add(node.getGeneralization(table[0][column]));
        }
        System.out.println(String.format(java.util.Locale.ROOT,
            "{\"round\": %d, \"columns\": %d, \"metric\": \"%s\", \"milliseconds\": %.3f, \"processor\": %.3f, "
            + "\"levels\": %s, \"score\": %s, \"classes\": %d, \"suppressed\": %d}",
            round, columns, order[1], milliseconds, processor, levels, node.getLowestScore().toString(),
            output.getStatistics().getEquivalenceClassStatistics().getNumberOfEquivalenceClasses(),
            output.getStatistics().getEquivalenceClassStatistics().getNumberOfSuppressedRecords()));
        data.getHandle().release();
    }

    private static Metric<?> metric(String name) {
        switch (name) {
            case "discernibility": return Metric.createDiscernabilityMetric();
            case "loss": return Metric.createLossMetric(AggregateFunction.GEOMETRIC_MEAN);
            case "entropy": return Metric.createEntropyMetric();
            default: throw new IllegalArgumentException(name);
        }
    }

    private static String[][] read(Path path) throws Exception {
        List<String[]> lines = new ArrayList<>();
        for (String line : Files.readAllLines(path, StandardCharsets.UTF_8)) {
            lines.add(line.split("\t", -1));
        }
        return lines.toArray(new String[0][]);
    }
}
