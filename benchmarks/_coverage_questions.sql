-- SmartNoise SQL
SELECT COUNT(*) AS c FROM staff
SELECT sex, COUNT(*) AS c, AVG(age) AS a FROM staff GROUP BY sex
SELECT COUNT(DISTINCT client) FROM orders
SELECT SUM(income) / COUNT(*) FROM staff
SELECT sex, region, AVG(income) AS i FROM staff GROUP BY sex, region ORDER BY i DESC LIMIT 3
SELECT VAR(age), STDDEV(age) FROM staff
SELECT sex, COUNT(*) AS n FROM staff WHERE age > 40 AND region IN ('north', 'east') GROUP BY sex HAVING n > 5
SELECT c * 2 AS twice FROM (SELECT COUNT(*) AS c FROM staff) AS t
SELECT POWER(AVG(age), 2), SQRT(SUM(income)) FROM staff
SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS g, COUNT(*) AS n FROM staff GROUP BY g
SELECT region, ABS(AVG(age) - 50) AS far, SIGN(AVG(age) - 50) AS side FROM staff GROUP BY region
SELECT TOP 2 region, COUNT(*) AS n FROM staff GROUP BY region ORDER BY n DESC
SELECT sex AS s, COUNT(*) AS n FROM (SELECT sex, age FROM staff WHERE age > 30) AS t GROUP BY sex
SELECT FLOOR(AVG(income)), CEILING(AVG(income)), ROUND(AVG(income), 2), TRUNCATE(AVG(income), 1) FROM staff
SELECT UPPER(region) AS r, LEN(region) AS l, COUNT(*) AS n FROM staff GROUP BY region
SELECT COALESCE(AVG(income), 0) AS i, NULLIF(COUNT(*), 0) AS n FROM staff
-- ZetaSQL
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 2) item, COUNT(*) AS n FROM orders GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) SUM(price, contribution_bounds_per_group => (0, 100)) AS s FROM orders
SELECT item, AVG(price, contribution_bounds_per_group => (0, 50)) AS a FROM orders GROUP BY item
SELECT COUNTIF(age > 30) AS n FROM staff
SELECT region, APPROX_QUANTILES(age, 4) AS q FROM staff GROUP BY region
SELECT PERCENTILE_CONT(age, 0.5) AS m FROM staff
SELECT FORMAT_DATE('%Y-%m', day) AS month, COUNT(*) AS n FROM orders GROUP BY month
SELECT SAFE_DIVIDE(SUM(price), COUNT(*)) AS p FROM orders
SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) AS n FROM orders GROUP BY m ORDER BY m
SELECT item, COUNT(*) AS n FROM orders GROUP BY item QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 2
SELECT VAR_POP(price) AS v, STDDEV_POP(price) AS s FROM orders
SELECT IF(COUNT(*) > 10, 'many', 'few') AS size FROM orders
-- Qrlew
SELECT region, SUM(income) AS s FROM staff GROUP BY region
WITH t AS (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) SELECT AVG(n) AS mean FROM t
SELECT o.item, SUM(o.price) AS s FROM orders AS o JOIN clients AS c ON o.client = c.client WHERE c.kind = 'a' GROUP BY o.item
SELECT COUNT(*) FROM (SELECT client, SUM(price) AS total FROM orders GROUP BY client) AS t WHERE total > 50
SELECT DISTINCT region FROM staff
SELECT 1 + 2 * COUNT(*) AS x, EXP(-COUNT(*) / 100.0) AS e, LN(1 + COUNT(*)) AS l FROM staff
SELECT region, STD(age) AS s FROM staff GROUP BY region
SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex UNION SELECT region, COUNT(*) FROM staff GROUP BY region
SELECT a.region, a.n - b.n AS d FROM (SELECT region, COUNT(*) AS n FROM staff WHERE sex = 'F' GROUP BY region) AS a JOIN (SELECT region, COUNT(*) AS n FROM staff WHERE sex = 'M' GROUP BY region) AS b ON a.region = b.region
SELECT CAST(AVG(age) AS INTEGER) AS a, CAST(COUNT(*) AS VARCHAR) AS t FROM staff
SELECT CONCAT(sex, '-', region) AS k, COUNT(*) AS n FROM staff GROUP BY sex, region
SELECT GREATEST(AVG(age), 30) AS g, LEAST(COUNT(*), 1000) AS l FROM staff
SELECT COUNT(*) FROM orders WHERE day BETWEEN DATE '2026-02-01' AND DATE '2026-03-31'
SELECT sex, SUM(income) FILTER (WHERE age > 50) AS s FROM staff GROUP BY sex
SELECT MAX(n) - MIN(n) AS width FROM (SELECT item, COUNT(*) AS n FROM orders GROUP BY item) AS t
SELECT (SELECT COUNT(*) FROM staff WHERE sex = 'F') * 1.0 / (SELECT COUNT(*) FROM staff) AS share
-- Tumult
SELECT region, MEDIAN(age) AS m, MIN(age) AS l, MAX(age) AS h FROM staff GROUP BY region
SELECT region, QUANTILE(income, 0.9) AS q FROM staff GROUP BY region
SELECT age // 10 * 10 AS bin, COUNT(*) AS n FROM staff GROUP BY bin
SELECT r.name, COUNT(*) AS n FROM staff AS s JOIN regions AS r ON r.region = s.region GROUP BY r.name
SELECT client_kind, COUNT(*) AS n FROM (SELECT kind AS client_kind FROM clients) AS t GROUP BY client_kind
SELECT kind, AVG(total) AS a FROM (SELECT c.client, c.kind, SUM(o.price) AS total FROM clients c JOIN orders o ON c.client = o.client GROUP BY c.client, c.kind) AS t GROUP BY kind
SELECT item, COUNT(DISTINCT client) AS people FROM orders GROUP BY item
SELECT region, sex, COUNT(*) AS n FROM staff GROUP BY CUBE (region, sex)
SELECT COUNT(*) AS n FROM staff WHERE region ILIKE 'N%'
SELECT SUM(LEAST(GREATEST(income, 10), 60)) AS s FROM staff
SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) AS q FROM staff
SELECT EXTRACT(MONTH FROM day) AS m, AVG(price) AS a FROM orders GROUP BY m HAVING COUNT(*) > 3
-- PipelineDP
SELECT item, COUNT(*) AS n, SUM(price) AS s, AVG(price) AS a, VARIANCE(price) AS v FROM orders GROUP BY item
SELECT item FROM orders GROUP BY item
SELECT DAYNAME(day) AS weekday, COUNT(*) AS n FROM orders GROUP BY weekday
SELECT strftime(day, '%Y-%m') AS month, SUM(price) AS s FROM orders GROUP BY month
SELECT item, SUM(price) / COUNT(DISTINCT client) AS each FROM orders GROUP BY item
-- what analysts add
SELECT region, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent FROM staff GROUP BY region
SELECT month, n, SUM(n) OVER (ORDER BY month) AS running FROM (SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM orders GROUP BY 1) AS t ORDER BY month
SELECT region, AVG(income) AS i, DENSE_RANK() OVER (ORDER BY AVG(income) DESC) AS place FROM staff GROUP BY region
SELECT 'women' AS who, COUNT(*) AS n FROM staff WHERE sex = 'F' UNION ALL SELECT 'all', COUNT(*) FROM staff
WITH f AS (SELECT region, AVG(income) AS i FROM staff WHERE sex = 'F' GROUP BY region), m AS (SELECT region, AVG(income) AS i FROM staff WHERE sex = 'M' GROUP BY region) SELECT f.region, m.i - f.i AS gap, f.i / m.i AS ratio FROM f JOIN m USING (region) ORDER BY gap DESC
SELECT region, n, CASE WHEN n > 30 THEN 'large' ELSE 'small' END AS size FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS t WHERE region <> 'west'
SELECT r.name, t.n * 1000.0 / r.inhabitants AS per_thousand FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS t JOIN regions AS r ON r.region = t.region
SELECT region, n FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS t WHERE n > (SELECT AVG(n) FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS u)
SELECT name, inhabitants FROM regions WHERE inhabitants > 1000 ORDER BY inhabitants DESC
SELECT sex, AVG(age) AS a, AVG(age) - LAG(AVG(age)) OVER (ORDER BY sex) AS d FROM staff GROUP BY sex
SELECT AVG(age) - 1.96 * STDDEV(age) / SQRT(COUNT(*)) AS low, AVG(age) + 1.96 * STDDEV(age) / SQRT(COUNT(*)) AS high FROM staff
SELECT CORR(age, income) AS r, POWER(CORR(age, income), 2) AS r2 FROM staff
SELECT t.a, t.b FROM (SELECT sex, COUNT(*) FROM staff GROUP BY sex) AS t(a, b)
SELECT SUM(DISTINCT age) AS s FROM staff
(SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex) UNION ALL (SELECT region, COUNT(*) FROM staff GROUP BY region)
SELECT POSITION('o' IN region) AS p, COUNT(*) AS n FROM staff GROUP BY p
SELECT COUNT(*) FROM clients SEMI JOIN orders USING (client)
SELECT COUNT(ALL age) AS n FROM staff
SELECT SUM(n) FILTER (WHERE region LIKE '%t') AS s, COUNT(*) FILTER (WHERE n > 20) AS c FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS t
-- unsafe
SELECT * FROM staff
SELECT age FROM staff LIMIT 1
SELECT client, SUM(price) FROM orders GROUP BY client
SELECT MAX(client) FROM orders
SELECT age, RANK() OVER (ORDER BY income) FROM staff
SELECT ARRAY_AGG(income) FROM staff
SELECT STRING_AGG(region, ',') FROM staff
SELECT ANY_VALUE(income) FROM staff
SELECT FIRST(income) FROM staff
SELECT COUNT(*) FROM staff WHERE income = (SELECT MAX(income) FROM staff)
SELECT n, income FROM staff CROSS JOIN (SELECT COUNT(*) AS n FROM staff) AS t
SELECT n FROM (SELECT COUNT(*) AS n FROM staff) AS t WHERE n IN (SELECT age FROM staff)
SELECT COUNT(*) FROM staff AS a JOIN staff AS b ON a.age < b.age
SELECT COUNT(*), (SELECT income FROM staff LIMIT 1) FROM staff
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT COUNT(*), CURRENT_SETTING('home_directory') FROM staff
SELECT COUNT(*) * RANDOM() FROM staff
SELECT COUNT(*) FROM staff TABLESAMPLE (1 ROWS)
SELECT COUNT(*) FROM staff; DROP TABLE staff
SELECT AVG(1 / (income - 7)) FROM staff
