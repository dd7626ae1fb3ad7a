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
-- the same grammars, form by form
SELECT AVG(t.b) FROM (SELECT sex, age FROM staff) AS t(a, b) WHERE t.a = 'F'
SELECT p.a, COUNT(*) FROM regions AS p(a, b, c) GROUP BY p.a
SELECT t.x, COUNT(*) AS n FROM staff AS p JOIN regions AS t(x, y, z) ON t.x = p.region GROUP BY t.x
SELECT COUNT(*) FROM staff AS p(a, b) WHERE a > 30
WITH t(a, b) AS (SELECT sex, COUNT(*) FROM staff GROUP BY sex) SELECT MAX(b) FROM t
SELECT AVG(q.age) FROM (SELECT p.*, v.price FROM clients p JOIN orders v USING (client)) AS q WHERE q.price > 10
SELECT COUNT(*) FROM (SELECT v.*, p.sex FROM clients p JOIN orders v USING (client)) AS q WHERE sex = 'F'
SELECT COUNT(*) FROM (SELECT * FROM clients p JOIN orders v USING (client)) AS q WHERE sex = 'F'
SELECT b.* FROM (SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex) a JOIN (SELECT sex, COUNT(*) AS m FROM clients GROUP BY sex) b USING (sex)
SELECT t.* FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a JOIN regions t USING (region)
SELECT * FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a JOIN regions t USING (region)
SELECT * EXCLUDE (inhabitants) FROM regions
SELECT COUNT(*) FROM (SELECT * EXCLUDE (income) FROM staff) t WHERE age > 30
SELECT COUNT(*) FROM (clients p JOIN orders v ON p.client = v.client)
SELECT COUNT(*) FROM (clients p JOIN orders v USING (client)) AS j WHERE j.sex = 'F'
SELECT a.sex, a.n FROM ((SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex) a JOIN (SELECT sex, COUNT(*) AS n FROM clients GROUP BY sex) b ON a.sex = b.sex)
SELECT COUNT(*) FROM clients p ANTI JOIN orders v ON v.client = p.client AND v.price > 50
SELECT COUNT(*) FROM clients LEFT SEMI JOIN orders USING (client)
SELECT sex, COUNT(*) FROM clients p SEMI JOIN (SELECT client FROM orders WHERE price > 30) v USING (client) GROUP BY sex
SELECT COUNT(*) FROM staff SEMI JOIN regions USING (region)
SELECT COUNT(*) FROM staff ANTI JOIN (SELECT region FROM regions WHERE inhabitants > 80) t USING (region)
SELECT a.sex, a.n, b.m FROM (SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex) a FULL JOIN (SELECT sex, COUNT(*) AS m FROM clients GROUP BY sex) b ON a.sex = b.sex
SELECT a.sex, a.n, b.m FROM (SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex) a FULL JOIN (SELECT sex, COUNT(*) AS m FROM clients GROUP BY sex) b USING (sex)
SELECT t.region, n FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a RIGHT JOIN regions t USING (region)
SELECT a.region, n FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a SEMI JOIN regions t USING (region)
SELECT t.region FROM regions t ANTI JOIN (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a USING (region)
SELECT COUNT(*) FROM orders v RIGHT JOIN clients p ON p.client = v.client
SELECT COUNT(*) FROM clients p WHERE EXISTS (SELECT 1 FROM orders v WHERE v.client = p.client AND v.price > p.age)
SELECT COUNT(*) FROM orders v WHERE EXISTS (SELECT 1 FROM orders w WHERE w.client = v.client AND w.item = v.item AND w.price > 50)
SELECT COUNT(*) FROM orders v WHERE NOT EXISTS (SELECT 1 FROM orders w WHERE w.client = v.client AND w.item <> v.item)
SELECT COUNT(*) FROM orders v WHERE EXISTS (SELECT 1 FROM clients p WHERE p.client = v.client AND p.age < v.price)
SELECT COUNT(*) FROM staff p WHERE EXISTS (SELECT 1 FROM regions t WHERE t.region = p.region AND t.inhabitants > 80)
SELECT COUNT(*) FROM staff p WHERE EXISTS (SELECT 1 FROM regions t WHERE t.region = p.region AND t.inhabitants > p.age)
SELECT COUNT(*) FROM orders v WHERE (v.client, v.item) IN (SELECT client, item FROM orders WHERE price > 50)
SELECT COUNT(*) FROM orders v WHERE v.price > (SELECT AVG(price) FROM orders w WHERE w.client = v.client)
SELECT COUNT(*) FROM clients p WHERE (SELECT COUNT(*) FROM orders v WHERE v.client = p.client) > 2
SELECT COUNT(*) FROM orders v WHERE v.client = ANY (SELECT client FROM clients WHERE age > 40)
SELECT COUNT(DISTINCT age) FROM staff
SELECT COUNT(DISTINCT region) FROM staff
SELECT sex, COUNT(DISTINCT region) FROM staff GROUP BY sex
SELECT COUNT(DISTINCT item) FROM orders
SELECT item, COUNT(DISTINCT client) FROM orders GROUP BY item
SELECT COUNT(ALL age) FROM staff
SELECT SUM(ALL income), AVG(ALL income) FROM staff
SELECT MAX(DISTINCT age), MIN(DISTINCT age) FROM staff
SELECT COUNT(DISTINCT sex, region) FROM staff
SELECT COUNT(DISTINCT (sex, region)) FROM staff
SELECT DISTINCT sex FROM staff
SELECT DISTINCT sex, region FROM staff
SELECT COUNT(*) FROM (SELECT DISTINCT client FROM orders) t
SELECT APPROX_COUNT_DISTINCT(client) FROM orders
SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY client ORDER BY price DESC) AS r FROM orders) t WHERE r <= 2
SELECT item, SUM(price) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY client ORDER BY day) AS r FROM orders) t WHERE r <= 2 GROUP BY item
SELECT COUNT(*) FROM (SELECT client, item, ROW_NUMBER() OVER (PARTITION BY client, item ORDER BY day) AS r FROM orders) t WHERE r = 1
SELECT COUNT(*) FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY client ORDER BY day) <= 2) t
SELECT COUNT(*) FROM (SELECT *, RANK() OVER (PARTITION BY client ORDER BY price DESC) AS r FROM orders) t WHERE r = 1
SELECT AVG(m) FROM (SELECT client, price, AVG(price) OVER (PARTITION BY client) AS m FROM orders) t
SELECT strftime(day, '%Y-%m') AS m, COUNT(*) FROM orders GROUP BY m
SELECT COUNT(*) FROM orders WHERE strftime(day, '%Y-%m') = '2026-03'
SELECT strftime(day, '%Y') AS y, SUM(price) FROM orders GROUP BY 1
SELECT item, strftime(day, '%m') AS m, AVG(price) FROM orders GROUP BY item, m HAVING COUNT(*) > 2
SELECT DAYNAME(day) AS d, COUNT(*) FROM orders GROUP BY d
SELECT MONTHNAME(day) AS d, COUNT(*) FROM orders GROUP BY d
SELECT DAYNAME(day) AS d, item, COUNT(*) FROM orders WHERE price > 10 GROUP BY d, item
SELECT COUNT(*) FROM orders WHERE DAYNAME(day) = 'Monday'
SELECT COUNT(*) FROM orders WHERE DAYNAME(day) IN ('Saturday', 'Sunday')
SELECT COUNT(*) FROM orders WHERE MONTHNAME(day) = 'March'
SELECT COUNT(*) FILTER (WHERE DAYNAME(day) = 'Monday') FROM orders
SELECT CASE WHEN DAYNAME(day) IN ('Saturday', 'Sunday') THEN 'weekend' ELSE 'week' END AS w, COUNT(*) FROM orders GROUP BY w
SELECT COUNT(*) FROM orders WHERE day >= make_date(2026, 3, 1)
SELECT make_date(YEAR(day), MONTH(day), 1) AS m, COUNT(*) FROM orders GROUP BY m
SELECT make_date(EXTRACT(YEAR FROM day), 1, 1) AS y, COUNT(*) FROM orders GROUP BY y
SELECT AVG(EXTRACT(EPOCH FROM day)) FROM orders
SELECT EXTRACT(EPOCH FROM MAX(day)) FROM orders
SELECT LAST_DAY(day) AS l, COUNT(*) FROM orders GROUP BY l
SELECT EXTRACT(WEEK FROM day) AS w, COUNT(*) FROM orders GROUP BY w
SELECT WEEK(day) AS w, COUNT(*) FROM orders GROUP BY w
SELECT EXTRACT(ISODOW FROM day) AS w, COUNT(*) FROM orders GROUP BY w
SELECT DATE_TRUNC('week', day) AS w, COUNT(*) FROM orders GROUP BY w HAVING COUNT(*) > 0.5
SELECT DATE_TRUNC('quarter', day) AS q, COUNT(*) FROM orders GROUP BY q
SELECT year(day) * 100 + month(day) AS ym, COUNT(*) FROM orders GROUP BY ym
SELECT DATE_PART('year', day) AS y, COUNT(*) FROM orders GROUP BY y
SELECT DATE_PART('week', day) AS y, COUNT(*) FROM orders GROUP BY y
SELECT COUNT(*) FROM orders WHERE day BETWEEN '2026-03-01' AND '2026-04-30'
SELECT MIN(day), MAX(day) FROM orders
SELECT DATE_DIFF('day', MIN(day), MAX(day)) FROM orders
SELECT AVG(DATE_DIFF('month', DATE '2026-01-01', day)) FROM orders
SELECT CAST(day AS VARCHAR) AS d, COUNT(*) FROM orders GROUP BY d HAVING COUNT(*) > 3
SELECT SUBSTR(CAST(day AS VARCHAR), 1, 7) AS m, COUNT(*) FROM orders GROUP BY m
SELECT POSITION('d' IN region) AS p, COUNT(*) FROM staff GROUP BY p
SELECT STRPOS(region, 'd') AS p, COUNT(*) FROM staff GROUP BY p
SELECT INSTR(region, 'd') AS p, COUNT(*) FROM staff GROUP BY p
SELECT COUNT(*) FROM staff WHERE region ILIKE 'n%'
SELECT COUNT(*) FROM staff WHERE region NOT ILIKE 'n%'
SELECT region ILIKE 'n%' AS d, COUNT(*) FROM staff GROUP BY d
SELECT COUNT(*) FROM staff WHERE STARTS_WITH(region, 'n')
SELECT COUNT(*) FROM staff WHERE CONTAINS(region, 'd')
SELECT COUNT(*) FROM staff WHERE ENDS_WITH(region, 't')
SELECT COUNT(*) FROM staff WHERE REGEXP_MATCHES(region, '^n')
SELECT COUNT(*) FROM staff WHERE region SIMILAR TO 'D.*'
SELECT COUNT(*) FROM staff WHERE region LIKE 'n!%' ESCAPE '!'
SELECT SUBSTR(region, 1, 2) AS s, COUNT(*) FROM staff GROUP BY s
SELECT SUBSTRING(region FROM 1 FOR 2) AS s, COUNT(*) FROM staff GROUP BY s
SELECT INITCAP(region) AS s, COUNT(*) FROM staff GROUP BY s
SELECT REVERSE(region) AS s, COUNT(*) FROM staff GROUP BY s
SELECT LPAD(region, 8, '.') AS s, COUNT(*) FROM staff GROUP BY s
SELECT CONCAT_WS('-', sex, region) AS s, COUNT(*) FROM staff GROUP BY sex, region
SELECT CONCAT_WS('-', sex, region) AS s, COUNT(*) FROM staff GROUP BY s
SELECT sex || region AS s, COUNT(*) FROM staff GROUP BY s
SELECT REPLACE(region, 'n', 'd') AS s, COUNT(*) FROM staff GROUP BY s
SELECT LOWER(TRIM(region)) AS s, COUNT(*) FROM staff GROUP BY s
SELECT SPLIT_PART(region, 'l', 1) AS s, COUNT(*) FROM staff GROUP BY s
SELECT TRANSLATE(region, 'n', 'd') AS s, COUNT(*) FROM staff GROUP BY s
SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) FROM staff
SELECT sex, QUANTILE_CONT(income, [0.1, 0.9]) AS q FROM staff GROUP BY sex
SELECT QUANTILE_DISC(age, [0.25, 0.75]) FROM staff
SELECT sex, QUANTILE_CONT(income, 0.5) AS q FROM staff GROUP BY sex
SELECT QUANTILE(age, 0.5) FROM staff
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM staff
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age DESC) FROM staff
SELECT QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) AS iqr FROM staff
SELECT APPROX_QUANTILE(age, 0.5) FROM staff
SELECT STD(age) FROM staff
SELECT sex, STDDEV(age) AS s FROM staff GROUP BY sex
SELECT GEOMEAN(age) FROM staff
SELECT EXP(AVG(LN(age))) FROM staff
SELECT SUM(age) FILTER (sex = 'F') FROM staff
SELECT MAX(age) - MIN(age) AS r FROM staff
SELECT FAVG(age), FSUM(age) FROM staff
SELECT COUNT(*) FILTER (WHERE age > 30) * 1.0 / COUNT(*) FROM staff
SELECT sex, region, COUNT(*) FROM staff GROUP BY ALL
SELECT sex, COUNT(*) FROM staff GROUP BY sex ORDER BY ALL
FROM staff SELECT sex, COUNT(*) GROUP BY sex
SELECT COVAR_SAMP(age, income), REGR_R2(age, income) FROM staff
SELECT SUM(age * income) / SUM(income) FROM staff
SELECT FLOOR(age / 10) AS d, AVG(income) FROM staff WHERE age BETWEEN 30 AND 59 GROUP BY d
SELECT EXTRACT(MONTH FROM day) AS m, AVG(price) FROM orders WHERE day BETWEEN DATE '2026-03-01' AND DATE '2026-05-31' GROUP BY m
SELECT m, AVG(price) FROM (SELECT EXTRACT(MONTH FROM day) AS m, price, day FROM orders) t WHERE day < DATE '2026-04-01' GROUP BY m
SELECT m, COUNT(*) FROM (SELECT EXTRACT(MONTH FROM day) AS m FROM orders) t WHERE m BETWEEN 2 AND 4 GROUP BY m
SELECT age // 10 AS d, COUNT(*) FROM staff WHERE age >= 40 AND age < 60 GROUP BY d
SELECT age, AVG(income) FROM staff WHERE age IN (30, 31, 32) GROUP BY age HAVING COUNT(*) > 0.5
SELECT CASE WHEN age < 40 THEN 'a' WHEN age < 60 THEN 'b' ELSE 'c' END AS g, COUNT(*) FROM staff WHERE age < 60 GROUP BY g
SELECT UPPER(region) AS t, COUNT(*) FROM staff WHERE region IN ('north', 'east') GROUP BY t
SELECT region, COUNT(*) FROM staff WHERE region <> 'north' GROUP BY region
SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM orders WHERE day >= DATE '2026-04-01' GROUP BY m
SELECT strftime(day, '%Y-%m') AS m, COUNT(*) FROM orders WHERE day >= DATE '2026-04-01' GROUP BY m
SELECT CASE WHEN age < 40 THEN 'a' ELSE 'c' END AS g, COUNT(*) FROM staff WHERE age >= 40 GROUP BY g
SELECT * FROM regions
SELECT COUNT(*) FROM regions
SELECT region, RANK() OVER (ORDER BY inhabitants DESC) FROM regions
SELECT COUNT(*) FROM regions a JOIN regions b ON a.inhabitants < b.inhabitants
SELECT region FROM regions LIMIT 2
SELECT UPPER(region), inhabitants * 2 FROM regions WHERE region LIKE 'n%'
SELECT region FROM regions WHERE inhabitants = (SELECT MAX(inhabitants) FROM regions)
SELECT STRING_AGG(region, ',') FROM regions
SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM staff GROUP BY region
SELECT region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS p FROM staff GROUP BY region
SELECT sex, region, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) AS p FROM staff GROUP BY sex, region
SELECT region, SUM(COUNT(*)) OVER (ORDER BY region) AS p FROM staff GROUP BY region
SELECT region, NTILE(2) OVER (ORDER BY COUNT(*)) AS p FROM staff GROUP BY region
SELECT region, COUNT(*) FROM staff GROUP BY region QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1
SELECT region, LEAD(COUNT(*)) OVER (ORDER BY region) AS p FROM staff GROUP BY region
SELECT region, AVG(COUNT(*)) OVER (ORDER BY region ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS p FROM staff GROUP BY region
SELECT region, CUME_DIST() OVER (ORDER BY COUNT(*)) AS p FROM staff GROUP BY region
SELECT region, FIRST_VALUE(region) OVER (ORDER BY COUNT(*) DESC) AS p FROM staff GROUP BY region
SELECT region, RANK() OVER w AS r FROM staff GROUP BY region WINDOW w AS (ORDER BY COUNT(*))
SELECT DISTINCT sex, COUNT(*) OVER (PARTITION BY sex) AS n FROM staff
SELECT sex AS k, COUNT(*) AS n FROM staff GROUP BY sex UNION SELECT region, COUNT(*) FROM staff GROUP BY region
SELECT sex AS k, COUNT(*) AS n FROM staff GROUP BY sex UNION ALL SELECT region, COUNT(*) FROM staff GROUP BY region ORDER BY n DESC LIMIT 2
SELECT region FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t WHERE n > 20 INTERSECT SELECT region FROM regions WHERE inhabitants > 80
SELECT region FROM regions EXCEPT SELECT region FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t
SELECT COUNT(*) FROM (SELECT age FROM staff WHERE sex = 'F' UNION ALL SELECT age FROM staff WHERE age > 30) t
SELECT COUNT(*) FROM (SELECT client FROM orders UNION SELECT client FROM clients) t
SELECT sex AS k, COUNT(*) AS n FROM staff GROUP BY sex UNION ALL BY NAME SELECT COUNT(*) AS n, region AS k FROM staff GROUP BY region
SELECT COUNT(*) FROM (SELECT client FROM clients EXCEPT SELECT client FROM orders) t
SELECT COUNT(*) FROM (SELECT client FROM clients INTERSECT SELECT client FROM orders) t
SELECT region, n * 1.0 / total AS s FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a CROSS JOIN (SELECT COUNT(*) AS total FROM staff) b
SELECT region, n * 1.0 / total AS s FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a, (SELECT COUNT(*) AS total FROM staff) b
SELECT t.region, COALESCE(n, 0) FROM regions t LEFT JOIN (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) a USING (region)
SELECT p.region, COUNT(*) * 1000.0 / t.inhabitants AS rate FROM staff p JOIN regions t ON p.region = t.region GROUP BY p.region, t.inhabitants
SELECT p.region, COUNT(*) * 1000.0 / MAX(t.inhabitants) AS rate FROM staff p JOIN regions t ON p.region = t.region GROUP BY p.region
SELECT DISTINCT region, COUNT(*) AS n FROM staff GROUP BY region
SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS s FROM staff
SELECT region, CASE region WHEN 'north' THEN 'x' ELSE 'y' END AS t, COUNT(*) FROM staff GROUP BY region
SELECT UPPER(region), COUNT(*) FROM staff GROUP BY region
SELECT SUBSTR(region, 1, 1) || sex, COUNT(*) FROM staff GROUP BY region, sex
SELECT IIF(age > 40, 'old', 'young') AS g, COUNT(*) FROM staff GROUP BY g
SELECT DECODE(sex, 'F', 1, 0) AS g, COUNT(*) FROM staff GROUP BY g
SELECT sex, COUNT(*) FROM staff GROUP BY sex HAVING COUNT(*) > (SELECT COUNT(*) / 10 FROM staff)
SELECT (age - 17) // 10 AS g, COUNT(*) FROM staff GROUP BY g HAVING COUNT(*) > 0.5
SELECT age BETWEEN 30 AND 40 AS b, COUNT(*) FROM staff GROUP BY b
SELECT age > 40 AS b, AVG(income) FROM staff GROUP BY b
SELECT AVG(n) FROM (SELECT client, COUNT(*) AS n FROM orders GROUP BY client) t
SELECT n, COUNT(*) AS staff FROM (SELECT client, COUNT(*) AS n FROM orders GROUP BY client) t GROUP BY n
SELECT AVG(a) FROM (SELECT region, AVG(age) AS a FROM staff GROUP BY region) t
SELECT MAX(s) FROM (SELECT item, SUM(price) AS s FROM orders GROUP BY item) t
SELECT STDDEV(n) FROM (SELECT client, COUNT(*) AS n FROM orders GROUP BY client) t
SELECT MEDIAN(n) FROM (SELECT client, SUM(price) AS n FROM orders GROUP BY client) t
SELECT AVG(m) FROM (SELECT client, MAX(price) AS m FROM orders GROUP BY client) t
SELECT AVG(m) FROM (SELECT client, AVG(price) AS m FROM orders GROUP BY client) t
SELECT item, AVG(n) FROM (SELECT client, item, COUNT(*) AS n FROM orders GROUP BY client, item) t GROUP BY item
SELECT AVG(n) FROM (SELECT item, DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM orders GROUP BY item, m) t
SELECT AVG(n) FROM (SELECT client, COUNT(DISTINCT item) AS n FROM orders GROUP BY client) t
SELECT COUNT(*) FROM (SELECT client FROM orders GROUP BY client HAVING COUNT(*) > 2) t
[bigquery] SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000000, max_groups_contributed = 2) item, COUNT(*) AS n FROM orders GROUP BY item
[bigquery] SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1000000, kappa = 2) item, COUNT(*) AS n FROM orders GROUP BY item
[bigquery] SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1000000) ANON_COUNT(*) FROM orders
[bigquery] SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1000000, kappa = 2) item, ANON_SUM(price CLAMPED BETWEEN 0 AND 50) FROM orders GROUP BY item
[bigquery] SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000000, kappa = 2) item, COUNT(*) AS n FROM orders GROUP BY item
[bigquery] SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000000, max_groups_contributed = 2, privacy_unit_column = client) item, SUM(price, contribution_bounds_per_group => (0, 100)) AS n FROM orders GROUP BY item
[bigquery] SELECT item, SUM(price, contribution_bounds_per_row => (0, 50)) AS n FROM orders GROUP BY item
[bigquery] SELECT item, AVG(price, contribution_bounds_per_row => (0, 50)) AS n FROM orders GROUP BY item
[bigquery] SELECT PERCENTILE_CONT(age, 0.5, contribution_bounds_per_row => (0, 50)) AS n FROM staff
[bigquery] SELECT PERCENTILE_CONT(age, 0.5) AS n FROM staff
[bigquery] SELECT APPROX_QUANTILES(age, 4) AS n FROM staff
[bigquery] SELECT APPROX_QUANTILES(age, 4)[OFFSET(2)] AS n FROM staff
[bigquery] SELECT APPROX_QUANTILES(age, 100)[SAFE_OFFSET(90)] AS n FROM staff
[bigquery] SELECT APPROX_COUNT_DISTINCT(client) AS n FROM orders
[bigquery] SELECT COUNTIF(age > 30) FROM staff
[bigquery] SELECT VAR_SAMP(age), VAR_POP(age), VARIANCE(age), STDDEV(age), STDDEV_POP(age) FROM staff
[bigquery] SELECT SAFE_DIVIDE(SUM(price), COUNT(*)) FROM orders
[bigquery] SELECT SAFE_CAST(AVG(price) AS INT64) FROM orders
[bigquery] SELECT SAFE_MULTIPLY(SUM(price), 2), SAFE_ADD(COUNT(*), 1), SAFE_SUBTRACT(COUNT(*), 1), SAFE_NEGATE(COUNT(*)) FROM orders
[bigquery] SELECT SUM(SAFE_DIVIDE(price, 2)) FROM orders
[bigquery] SELECT SUM(SAFE_ADD(price, 2)) FROM orders
[bigquery] SELECT SUM(SAFE_CAST(price AS FLOAT64)) FROM orders
[bigquery] SELECT FORMAT_DATE('%Y-%m', day) AS m, COUNT(*) FROM orders GROUP BY m
[bigquery] SELECT FORMAT_DATE('%A', day) AS m, COUNT(*) FROM orders GROUP BY m
[bigquery] SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) FROM orders GROUP BY m
[bigquery] SELECT DATE_TRUNC(day, ISOWEEK) AS m, COUNT(*) FROM orders GROUP BY m HAVING COUNT(*) > 0.5
[bigquery] SELECT DATE_TRUNC(day, WEEK(MONDAY)) AS m, COUNT(*) FROM orders GROUP BY m HAVING COUNT(*) > 0.5
[bigquery] SELECT EXTRACT(DAYOFWEEK FROM day) AS m, COUNT(*) FROM orders GROUP BY m
[bigquery] SELECT EXTRACT(ISOWEEK FROM day) AS m, COUNT(*) FROM orders GROUP BY m
[bigquery] SELECT DATE_DIFF(MAX(day), MIN(day), DAY) AS m FROM orders
[bigquery] SELECT COUNT(*) FROM orders WHERE day >= PARSE_DATE('%Y-%m-%d', '2026-03-01')
[bigquery] SELECT COUNT(*) FROM orders WHERE day >= DATE(2026, 3, 1)
[bigquery] SELECT COUNT(*) FROM orders WHERE day >= DATE_SUB(DATE '2026-03-01', INTERVAL 1 MONTH)
[bigquery] SELECT TIME_TRUNC(PARSE_TIME('%H:%M', '10:20'), HOUR) AS t, COUNT(*) FROM orders
[bigquery] SELECT IF(age > 40, 'old', 'young') AS g, COUNT(*) FROM staff GROUP BY g
[bigquery] SELECT STARTS_WITH(region, 'n') AS g, COUNT(*) FROM staff GROUP BY g
[bigquery] SELECT CORR(age, income) FROM staff
[bigquery] SELECT RANGE_BUCKET(age, [20, 40, 60]) AS g, COUNT(*) FROM staff GROUP BY g
[bigquery] SELECT * EXCEPT (inhabitants) FROM regions
[bigquery] SELECT DIV(age, 10) AS g, COUNT(*) FROM staff GROUP BY g HAVING COUNT(*) > 0.5
[bigquery] SELECT MOD(age, 10) AS g, COUNT(*) FROM staff GROUP BY g HAVING COUNT(*) > 0.5
[postgres] SELECT TO_CHAR(day, 'YYYY-MM') AS m, COUNT(*) FROM orders GROUP BY m
[postgres] SELECT TO_CHAR(day, 'Day') AS m, COUNT(*) FROM orders GROUP BY m
[postgres] SELECT TO_CHAR(day, 'YYYY') AS m, COUNT(*) FROM orders GROUP BY m
[postgres] SELECT TO_CHAR(day, 'FMMonth') AS m, COUNT(*) FROM orders GROUP BY m
[postgres] SELECT TO_CHAR(day, 'YYYY"Q"Q') AS m, COUNT(*) FROM orders GROUP BY m
[postgres] SELECT TO_CHAR(day, 'IYYY-IW') AS m, COUNT(*) FROM orders GROUP BY m HAVING COUNT(*) > 0.5
[postgres] SELECT COUNT(*) FROM orders WHERE day >= make_date(2026, 3, 1)
[postgres] SELECT COUNT(*) FROM orders WHERE day >= TO_DATE('2026-03-01', 'YYYY-MM-DD')
[postgres] SELECT COUNT(*) FROM staff WHERE region ~ '^n'
[postgres] SELECT COUNT(*) FROM staff WHERE region ~* '^n'
[postgres] SELECT COUNT(*) FROM staff WHERE region ILIKE 'n%'
[postgres] SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY age) FROM staff
[postgres] SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM staff
[postgres] SELECT EXTRACT(EPOCH FROM day) / 86400 AS d, COUNT(*) FROM orders GROUP BY d HAVING COUNT(*) > 3
[postgres] SELECT COUNT(*)::float / NULLIF(SUM(price), 0) FROM orders
[postgres] SELECT DISTINCT ON (region) region, COUNT(*) FROM staff GROUP BY region ORDER BY region
[postgres] SELECT date_part('isodow', day) AS d, COUNT(*) FROM orders GROUP BY d
[postgres] SELECT COUNT(*) FROM staff WHERE age = ANY(ARRAY[30, 31, 40])
[postgres] SELECT width_bucket(age, 20, 80, 6) AS b, COUNT(*) FROM staff GROUP BY b HAVING COUNT(*) > 0.5
[postgres] SELECT region, SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END)::numeric / COUNT(*) AS s FROM staff GROUP BY region
[postgres] SELECT (SELECT COUNT(*) FROM staff WHERE sex = 'F')::numeric / (SELECT COUNT(*) FROM staff)
[postgres] SELECT region, COUNT(*) FROM staff GROUP BY region ORDER BY COUNT(*) DESC FETCH FIRST 2 ROWS ONLY
[mysql] SELECT DATE_FORMAT(day, '%Y-%m') AS m, COUNT(*) FROM orders GROUP BY m
[mysql] SELECT STD(age) FROM staff
[mysql] SELECT DAYNAME(day) AS d, COUNT(*) FROM orders GROUP BY d
[mysql] SELECT IF(age > 40, 'o', 'y') AS g, COUNT(*) FROM staff GROUP BY g
[mysql] SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) FROM orders GROUP BY y, m
[mysql] SELECT WEEKDAY(day) AS w, COUNT(*) FROM orders GROUP BY w
[mysql] SELECT LOCATE('d', region) AS w, COUNT(*) FROM staff GROUP BY w
[mysql] SELECT age DIV 10 AS w, COUNT(*) FROM staff GROUP BY w HAVING COUNT(*) > 0.5
[snowflake] SELECT TO_CHAR(day, 'YYYY-MM') AS m, COUNT(*) FROM orders GROUP BY m
[snowflake] SELECT DAYNAME(day) AS m, COUNT(*) FROM orders GROUP BY m
[snowflake] SELECT IFF(age > 40, 'o', 'y') AS g, COUNT(*) FROM staff GROUP BY g
[snowflake] SELECT DATEADD(month, 1, MAX(day)) AS g FROM orders
[snowflake] SELECT region, RATIO_TO_REPORT(COUNT(*)) OVER () AS s FROM staff GROUP BY region
[snowflake] SELECT DIV0(SUM(price), COUNT(*)) FROM orders
[snowflake] SELECT COUNT(*) FROM orders WHERE day >= DATE_FROM_PARTS(2026, 3, 1)
[snowflake] SELECT ZEROIFNULL(SUM(price)) FROM orders
[snowflake] SELECT MEDIAN(age) FROM staff
[spark] SELECT date_format(day, 'yyyy-MM') AS m, COUNT(*) FROM orders GROUP BY m
[spark] SELECT COUNT(*) FROM clients LEFT ANTI JOIN orders USING (client)
[spark] SELECT percentile(age, array(0.25, 0.75)) FROM staff
[spark] SELECT percentile_approx(age, 0.5) FROM staff
[spark] SELECT count_if(age > 30) FROM staff
[spark] SELECT weekofyear(day) AS w, COUNT(*) FROM orders GROUP BY w
[spark] SELECT trunc(day, 'MM') AS m, COUNT(*) FROM orders GROUP BY m
[spark] SELECT COUNT(*) FROM orders WHERE day >= to_date('2026-03-01')
[tsql] SELECT TOP 2 region, COUNT(*) AS n FROM staff GROUP BY region ORDER BY n DESC
[tsql] SELECT FORMAT(day, 'yyyy-MM') AS m, COUNT(*) FROM orders GROUP BY FORMAT(day, 'yyyy-MM')
[tsql] SELECT DATENAME(month, day) AS m, COUNT(*) FROM orders GROUP BY DATENAME(month, day)
[tsql] SELECT DATEPART(month, day) AS m, COUNT(*) FROM orders GROUP BY DATEPART(month, day)
[tsql] SELECT COUNT(*) FROM orders WHERE day >= DATEFROMPARTS(2026, 3, 1)
[tsql] SELECT EOMONTH(day) AS m, COUNT(*) FROM orders GROUP BY EOMONTH(day)
[tsql] SELECT IIF(age > 40, 'o', 'y') AS g, COUNT(*) FROM staff GROUP BY IIF(age > 40, 'o', 'y')
[tsql] SELECT CHARINDEX('d', region) AS g, COUNT(*) FROM staff GROUP BY CHARINDEX('d', region)
[tsql] SELECT STDEV(age), VAR(age), STDEVP(age), VARP(age) FROM staff
[tsql] SELECT COUNT_BIG(*) FROM staff
[oracle] SELECT TO_CHAR(day, 'YYYY-MM') AS m, COUNT(*) FROM orders GROUP BY TO_CHAR(day, 'YYYY-MM')
[oracle] SELECT NVL(SUM(price), 0) FROM orders
[oracle] SELECT TRUNC(day, 'MM') AS m, COUNT(*) FROM orders GROUP BY TRUNC(day, 'MM')
[oracle] SELECT COUNT(*) FROM orders WHERE day >= TO_DATE('2026-03-01', 'YYYY-MM-DD')
[oracle] SELECT DECODE(sex, 'F', 'w', 'm') AS g, COUNT(*) FROM staff GROUP BY DECODE(sex, 'F', 'w', 'm')
[oracle] SELECT MEDIAN(age) FROM staff
[sqlite] SELECT strftime('%Y-%m', day) AS m, COUNT(*) FROM orders GROUP BY m
[sqlite] SELECT IIF(age > 40, 'o', 'y') AS g, COUNT(*) FROM staff GROUP BY g
[sqlite] SELECT TOTAL(price) FROM orders
[trino] SELECT date_format(day, '%Y-%m') AS m, COUNT(*) FROM orders GROUP BY 1
[trino] SELECT approx_percentile(age, ARRAY[0.25, 0.75]) FROM staff
[trino] SELECT approx_distinct(client) FROM orders
[trino] SELECT count_if(age > 30), geometric_mean(age) FROM staff
[trino] SELECT day_of_week(day) AS d, COUNT(*) FROM orders GROUP BY 1
[redshift] SELECT TO_CHAR(day, 'YYYY-MM') AS m, COUNT(*) FROM orders GROUP BY 1
[redshift] SELECT DATEDIFF(day, MIN(day), MAX(day)) FROM orders
[duckdb] SELECT datepart('month', day) AS m, COUNT(*) FROM orders GROUP BY m
[duckdb] SELECT COUNT(*) FROM staff WHERE age NOT BETWEEN 30 AND 40
[duckdb] SELECT sex, COUNT(*) FROM staff GROUP BY ALL ORDER BY ALL
-- TPC-H, tutorials and dashboards
SELECT sex, region, SUM(income) AS s, AVG(income) AS a, COUNT(*) AS n FROM staff WHERE age <= 55 GROUP BY sex, region ORDER BY sex, region
SELECT SUM(price * 0.9) AS revenue FROM orders WHERE day >= DATE '2026-02-01' AND day < DATE '2026-02-01' + INTERVAL '3' MONTH AND price BETWEEN 5 AND 70
SELECT 100.00 * SUM(CASE WHEN item LIKE 'te%' THEN price ELSE 0 END) / SUM(price) AS promo FROM orders
SELECT c_count, COUNT(*) AS custdist FROM (SELECT c.client, COUNT(o.item) AS c_count FROM clients c LEFT JOIN orders o ON c.client = o.client AND o.item = 'tea' GROUP BY c.client) AS t GROUP BY c_count ORDER BY custdist DESC, c_count DESC
SELECT EXTRACT(YEAR FROM day) AS y, SUM(CASE WHEN item = 'tea' THEN price ELSE 0 END) / SUM(price) AS share FROM orders GROUP BY y HAVING COUNT(*) > 0.5 ORDER BY y
SELECT COUNT(*) FROM clients WHERE client NOT IN (SELECT client FROM orders WHERE price > 90)
SELECT SUM(price) / 7.0 AS yearly FROM orders WHERE price < 0.8 * 50
SELECT kind, COUNT(*) AS n FROM clients c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.client = c.client AND o.price > 50) GROUP BY kind
SELECT r.name, SUM(s.income) AS s FROM staff s JOIN regions r ON s.region = r.region WHERE r.inhabitants > 800 GROUP BY r.name ORDER BY s DESC
WITH t AS (SELECT item, SUM(price) AS total FROM orders GROUP BY item) SELECT item, total FROM t WHERE total = (SELECT MAX(total) FROM t)
SELECT SUM(CASE WHEN price > 50 THEN 1 ELSE 0 END) AS high, SUM(CASE WHEN price <= 50 THEN 1 ELSE 0 END) AS low, item FROM orders GROUP BY item ORDER BY item
SELECT region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM staff GROUP BY region ORDER BY pct DESC
SELECT region, n, n - LAG(n) OVER (ORDER BY region) AS d FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t ORDER BY region
SELECT m, n, SUM(n) OVER (ORDER BY m) AS running FROM (SELECT MONTH(day) AS m, COUNT(*) AS n FROM orders GROUP BY m) t WHERE n > 0.5 ORDER BY m
SELECT COUNT(DISTINCT CASE WHEN price > 50 THEN client END) AS n FROM orders
SELECT COUNT(DISTINCT client) FILTER (WHERE price > 50) AS n FROM orders
SELECT AVG(n) AS mean, MAX(n) AS most FROM (SELECT client, COUNT(*) AS n FROM orders GROUP BY client) AS t
SELECT sex, AVG(age) FILTER (WHERE income > 50) AS rich, AVG(age) FILTER (WHERE income <= 50) AS poor FROM staff GROUP BY sex
SELECT CASE WHEN age BETWEEN 18 AND 29 THEN '18-29' WHEN age BETWEEN 30 AND 49 THEN '30-49' WHEN age >= 50 THEN '50+' END AS band, sex, COUNT(*) AS n FROM staff GROUP BY band, sex ORDER BY band, sex
SELECT COALESCE(region, 'all') AS r, COUNT(*) AS n FROM staff GROUP BY ROLLUP (region) ORDER BY n DESC
SELECT STRING_AGG(region, ' > ' ORDER BY n DESC) AS ranking FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) AS t
SELECT COUNT(*) FROM staff WHERE region SIMILAR TO '(no|so)(r|u)th'
SELECT REGR_SLOPE(income, age) AS b, REGR_INTERCEPT(income, age) AS a, CORR(income, age) AS r FROM staff
SELECT sex, VAR_SAMP(income) / NULLIF(AVG(income), 0) AS dispersion FROM staff GROUP BY sex
SELECT DATE_TRUNC('quarter', day) AS q, item, AVG(price) AS p FROM orders GROUP BY q, item HAVING COUNT(*) > 0.5 ORDER BY q, item
SELECT weekday, AVG(n) AS a FROM (SELECT DAYNAME(day) AS weekday, item, COUNT(*) AS n FROM orders GROUP BY weekday, item) t GROUP BY weekday HAVING SUM(n) > 0.5
SELECT MAX(n) FILTER (WHERE item = 'tea') - MAX(n) FILTER (WHERE item = 'milk') AS d FROM (SELECT item, COUNT(*) AS n FROM orders GROUP BY item) t
SELECT a.item, b.item AS other, COUNT(*) AS n FROM orders a JOIN orders b ON a.client = b.client AND a.item < b.item GROUP BY a.item, b.item HAVING COUNT(*) > 0.5
SELECT item, COUNT(*) AS visits, COUNT(DISTINCT client) AS people, COUNT(*) * 1.0 / COUNT(DISTINCT client) AS each FROM orders GROUP BY item
SELECT kind, AVG(days) AS d FROM (SELECT c.client, c.kind, DATE_DIFF('day', MIN(o.day), MAX(o.day)) AS days FROM clients c JOIN orders o ON o.client = c.client GROUP BY c.client, c.kind) t GROUP BY kind
SELECT LEAST(100, GREATEST(0, AVG(income))) AS a, ROUND(STDDEV_SAMP(income), 2) AS s FROM staff
SELECT region FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t ORDER BY n DESC LIMIT 1
SELECT 'women' AS who, COUNT(*) AS n FROM staff WHERE sex = 'F' UNION ALL SELECT 'men', COUNT(*) FROM staff WHERE sex = 'M' ORDER BY who
SELECT COUNT(*) FROM staff WHERE (age, sex) IN ((30, 'F'), (31, 'M'))
SELECT NTILE(2) OVER (ORDER BY region) AS half, region FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t ORDER BY region
SELECT SUM(n) FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region HAVING COUNT(*) > 20) t
SELECT o.item, c.kind, SUM(o.price) AS s FROM clients c JOIN orders o USING (client) WHERE c.age BETWEEN 25 AND 45 AND o.day >= DATE '2026-02-01' GROUP BY GROUPING SETS ((o.item, c.kind), (o.item), ())
SELECT p.sex, AVG(p.income - t.m) AS d FROM staff p CROSS JOIN (SELECT AVG(inhabitants) / 100 AS m FROM regions) t GROUP BY p.sex
SELECT COUNT(*) FROM staff WHERE region = ANY (SELECT region FROM regions WHERE inhabitants > 1000)
SELECT COUNT(*) FROM staff WHERE income >= ALL (SELECT inhabitants / 1000 FROM regions)
SELECT t.*, n / 2 AS half FROM (SELECT sex, COUNT(*) AS n FROM staff GROUP BY sex) t ORDER BY sex
SELECT COUNT(*) FROM orders WHERE EXTRACT(DOW FROM day) NOT IN (0, 6) AND day <> DATE '2026-01-01'
SELECT age - age % 10 AS decade, COUNT(*) AS n FROM staff GROUP BY decade HAVING COUNT(*) > 0.5 ORDER BY decade
SELECT COUNT(*) FROM staff p(a, b) WHERE a > 30
SELECT COUNT(*) FROM (VALUES ('north'), ('south')) AS v(region) JOIN staff s ON s.region = v.region
SELECT sex, MODE(region) AS m FROM staff GROUP BY sex
SELECT APPROX_COUNT_DISTINCT(item) AS n, MIN(day) IS NOT NULL AS known FROM orders
SELECT sex, COUNT(*) > 60 AS many FROM staff GROUP BY sex ORDER BY sex
SELECT EXISTS (SELECT 1 FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t WHERE n > 20) AS any_large
SELECT COUNT(*) FROM staff p WHERE EXISTS (SELECT 1 FROM regions t WHERE t.region = p.region AND t.inhabitants > p.age * 20)
SELECT COUNT(*) FROM staff p WHERE p.income > (SELECT AVG(inhabitants) / 50 FROM regions r WHERE r.region = p.region)
SELECT CONCAT(ROUND(100.0 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*), 0), ' %') AS women FROM staff
[bigquery] SELECT TIME_TRUNC(TIME '10:20:00', HOUR) AS t, COUNT(*) AS n FROM orders
[snowflake] SELECT LISTAGG(region, ',') WITHIN GROUP (ORDER BY region) AS l FROM (SELECT region, COUNT(*) AS n FROM staff GROUP BY region) t
[postgres] SELECT COUNT(*) FROM staff WHERE region SIMILAR TO '(no|so)%'
SELECT DISTINCT sex, SUM(income) OVER (PARTITION BY sex) AS s FROM staff
SELECT item, COUNT(DISTINCT client) FILTER (WHERE price > 90) AS n FROM orders GROUP BY item
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
SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY price) AS r FROM orders) AS t WHERE r <= 2
SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price) AS r FROM orders) AS t WHERE r = 1
SELECT price, ROW_NUMBER() OVER (PARTITION BY client ORDER BY day) AS r FROM orders
SELECT COUNT(*) FROM orders AS o WHERE EXISTS (SELECT 1 FROM orders AS p WHERE p.item = o.item AND p.price > o.price)
SELECT COUNT(*) FROM orders AS o WHERE o.price > (SELECT AVG(price) FROM orders AS p WHERE p.item = o.item)
SELECT COUNT(*) FROM (SELECT price FROM orders UNION SELECT price FROM orders) AS t
SELECT COUNT(*) FROM (SELECT item FROM orders EXCEPT SELECT item FROM orders WHERE price > 50) AS t
SELECT * EXCEPT (price) FROM orders
SELECT COUNT(* EXCEPT (age)) FROM staff
SELECT COUNT(DISTINCT (client, item)) FROM orders
FROM staff
SELECT COUNT(*) FROM staff CROSS JOIN regions
SELECT STRING_AGG(item, ',' ORDER BY price) FROM orders WHERE client = 3
SELECT sex, LISTAGG(age, '-') WITHIN GROUP (ORDER BY age) FROM staff GROUP BY sex
SELECT client, COUNT(*) OVER (PARTITION BY client) AS n FROM orders
SELECT DISTINCT client, COUNT(*) OVER (PARTITION BY client) AS n FROM orders
SELECT DISTINCT income FROM staff UNION ALL SELECT age FROM staff
SELECT COUNT(DISTINCT client) FILTER (WHERE client = 7) FROM orders
SELECT COUNT(*) FROM orders WHERE client = 7
SELECT item, COUNT(*) FROM orders GROUP BY item, client
SELECT COUNT(*) FROM staff WHERE age = (SELECT age FROM staff ORDER BY income DESC LIMIT 1)
SELECT CASE WHEN EXISTS (SELECT 1 FROM staff WHERE age = 33) THEN 1 ELSE 0 END AS there
SELECT n FROM (SELECT COUNT(*) AS n FROM staff) t WHERE EXISTS (SELECT 1 FROM staff WHERE age = 33)
SELECT MIN(client), MAX(client) FROM clients
SELECT COUNT(*) FROM orders GROUP BY client HAVING COUNT(*) > 2
SELECT ARRAY_TO_STRING(ARRAY_AGG(income), ',') FROM staff
SELECT JSON_GROUP_ARRAY(income) FROM staff
SELECT HISTOGRAM(income) FROM staff
SELECT AVG(income) OVER (ORDER BY age ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM staff
