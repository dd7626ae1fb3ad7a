// Asks the front through node-pg: a question with a parameter, by name and not, and a refusal. One JSON object on a line.
import { createRequire } from "node:module";

const [modules, url] = process.argv.slice(2);
const { Client } = createRequire(`${modules}/`)("pg");
const client = new Client({ connectionString: url });
await client.connect();
await client.query("SET cloister.spend = 9");
const text = "SELECT sex, COUNT(*) AS n FROM people WHERE age > $1 GROUP BY sex";
const first = await client.query(text, [20]);
const named = await client.query({ name: "by-sex", text, values: [20] });
let refused = "";
try {
  await client.query("SELECT nosuch FROM people");
} catch (error) {
  refused = error.code;
}
await client.end();
const fields = first.fields.map((field) => [field.name, field.dataTypeID]);
console.log(JSON.stringify({ fields, rows: first.rows, same: JSON.stringify(first.rows) === JSON.stringify(named.rows), refused }));
