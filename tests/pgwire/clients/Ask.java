/** Asks the front through pgjdbc, at one address after the other: a prepared question with parameters, then what tools ask of the catalogue. One line a finding. */
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;

class Ask {
    public static void main(String[] words) throws SQLException {
        for (int place = 1; place < words.length; place++) {
            ask(words[place], words[0]);
        }
    }

    static void ask(String address, String token) throws SQLException {
        try (Connection connection = DriverManager.getConnection(address, "ada", token)) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("SET cloister.spend = 9");
            }
            String question = "SELECT sex, COUNT(*) AS n, AVG(pay) AS pay FROM people WHERE age > ? GROUP BY sex";
            for (int round = 0; round < 7; round++) {  // from the fifth on the driver prepares it on the server
                try (PreparedStatement statement = connection.prepareStatement(question)) {
                    statement.setInt(1, 20);
                    ResultSet found = statement.executeQuery();
                    ResultSetMetaData columns = found.getMetaData();
                    StringBuilder line = new StringBuilder("answer");
                    for (int place = 1; place <= columns.getColumnCount(); place++) {
                        line.append(' ').append(columns.getColumnName(place)).append(':').append(columns.getColumnTypeName(place));
                    }
                    int rows = 0;
                    while (found.next()) {
                        rows++;
                    }
                    System.out.println(line + " " + rows);
                }
            }
            DatabaseMetaData catalogue = connection.getMetaData();
            ResultSet tables = catalogue.getTables(null, null, "%", new String[] {"TABLE"});
            while (tables.next()) {
                System.out.println("table " + tables.getString("TABLE_NAME"));
            }
            ResultSet columns = catalogue.getColumns(null, null, "people", "%");
            while (columns.next()) {
                System.out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery("SELECT nosuch FROM people");
            } catch (SQLException refused) {
                System.out.println("refused " + refused.getSQLState());
            }
        }
    }
}
