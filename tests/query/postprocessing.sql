SELECT sex, SQRT(COUNT(*)) AS r, POWER(COUNT(*), 2) AS p, LN(SUM(pay)) AS l FROM people GROUP BY sex ORDER BY sex
SELECT PI() * COUNT(*), EXP(AVG(age) / 100), CBRT(COUNT(*)), LOG(10, COUNT(*)) FROM people
SELECT FLOOR(AVG(age)), CEIL(AVG(age)), ROUND(AVG(age), 1), SIGN(COUNT(*)), ABS(SUM(pay)) FROM people
SELECT CAST(AVG(age) AS INTEGER) AS a, COUNT(*) % 7 AS m, DEGREES(COUNT(*)) AS d FROM people
SELECT sex, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY sex ORDER BY sex
SELECT (SELECT COUNT(*) FROM people) / (SELECT COUNT(*) FROM patients) AS ratio
SELECT sex, CASE WHEN COUNT(*) > 40 THEN 'many' WHEN COUNT(*) > 1 THEN 'some' ELSE 'few' END FROM people GROUP BY sex ORDER BY sex
SELECT GREATEST(COUNT(*), 3), LEAST(AVG(age), 20), NULLIF(COUNT(*), 80), COALESCE(SUM(pay), 0) + SQRT(4) FROM people
SELECT UPPER(sex) || '-' || LOWER(town) AS k, COUNT(*) AS n FROM people GROUP BY sex, town ORDER BY k
SELECT LEFT(town, 2) AS i, LENGTH(town) AS l, COUNT(*) FROM people GROUP BY town ORDER BY town
SELECT sex, town, COUNT(*) FROM people GROUP BY sex, town ORDER BY LENGTH(town), sex, town LIMIT 3
SELECT town || '!' AS t, COUNT(*) FROM people GROUP BY town HAVING town LIKE 'D%' OR SQRT(COUNT(*)) > 5 ORDER BY town
SELECT age // 10 AS decade, (age // 10) * 10 AS start, COUNT(*) AS n, SQRT(COUNT(*)) FROM people GROUP BY age // 10 ORDER BY 1
SELECT AVG(n), MAX(n), MIN(n), SUM(n), COUNT(*), MEDIAN(n) FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t
SELECT sex, MAX(n) AS most, SUM(s) AS s FROM (SELECT sex, town, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY sex, town) AS g GROUP BY sex ORDER BY sex
SELECT STDDEV(n), VAR_POP(n), QUANTILE_CONT(n, 0.25), COUNT(DISTINCT town) FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t
SELECT COUNT(*) AS c FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t WHERE n > 25
SELECT sex, COUNT(*) FILTER (WHERE n > 13) AS c, SUM(n) FILTER (WHERE town = 'Delft') AS d FROM (SELECT sex, town, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY sex, town) AS g GROUP BY sex ORDER BY sex
WITH t AS (SELECT town, COUNT(*) AS n FROM people GROUP BY town), u AS (SELECT MAX(n) AS m FROM t) SELECT town, n, n / m AS part FROM t CROSS JOIN u ORDER BY town
WITH t AS (SELECT town, COUNT(*) AS n FROM people GROUP BY town) SELECT a.town, b.town, a.n - b.n AS d FROM t AS a JOIN t AS b ON a.town < b.town ORDER BY 1, 2
SELECT town FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t WHERE n = (SELECT MAX(n) FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS u) ORDER BY town
SELECT sex, SUM(n) AS n FROM (SELECT sex, town, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY sex, town) AS g GROUP BY ROLLUP (sex) ORDER BY sex NULLS LAST
WITH t AS (SELECT ward, AVG(cost) AS c FROM visits GROUP BY ward) SELECT MAX(c) - MIN(c) AS width FROM t
SELECT AVG(x.n) FROM (SELECT p.sex, COUNT(*) AS n FROM patients p JOIN visits v ON v.patient = p.patient GROUP BY p.sex) AS x
WITH v AS (SELECT * FROM visits WHERE cost > 20) SELECT ward, COUNT(*) / (SELECT COUNT(*) FROM v) AS s FROM v GROUP BY ward ORDER BY 1
SELECT town, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY town ORDER BY town
SELECT town, n, SUM(n) OVER (ORDER BY town) AS run, AVG(n) OVER (ORDER BY town ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t
SELECT sex, town, RANK() OVER (PARTITION BY sex ORDER BY n DESC) AS r, n FROM (SELECT sex, town, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY sex, town) AS g ORDER BY sex, r, town
SELECT town, LAG(n) OVER (ORDER BY town) AS before, n - LAG(n) OVER (ORDER BY town) AS d FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t ORDER BY town
SELECT town, ROW_NUMBER() OVER (ORDER BY town DESC) AS r FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t ORDER BY r
SELECT town, n FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC, town) <= 2 ORDER BY town
SELECT town, MAX(n) OVER w AS m FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t WINDOW w AS (ORDER BY town DESC) ORDER BY town
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT 'all', COUNT(*) FROM people
SELECT sex, COUNT(*) > 1 AS some FROM people GROUP BY sex UNION SELECT sex, COUNT(*) > 1 FROM patients GROUP BY sex ORDER BY sex
SELECT a.n - b.n AS d FROM (SELECT COUNT(*) AS n FROM people) AS a CROSS JOIN (SELECT COUNT(*) AS n FROM patients) AS b
SELECT a.sex, a.n, b.n AS m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS a JOIN (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS b USING (sex) ORDER BY 1
SELECT t.province, SUM(a.n) AS n, SUM(a.n) / SUM(t.inhabitants) AS rate FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS a JOIN towns AS t ON t.town = a.town GROUP BY 1
SELECT t.town, COALESCE(a.n, 0) AS n FROM towns AS t LEFT JOIN (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS a ON a.town = t.town ORDER BY t.town
SELECT DISTINCT n > 10 AS large FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t
SELECT * FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t ORDER BY n DESC, town LIMIT 2
SELECT t.* FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) AS t WHERE town IN (SELECT town FROM towns WHERE inhabitants > 80) ORDER BY 1
SELECT province, SUM(inhabitants) AS i FROM towns GROUP BY province ORDER BY i DESC
SELECT town FROM towns WHERE inhabitants > 80 ORDER BY inhabitants
SELECT a.town, b.town FROM towns a JOIN towns b USING (province) WHERE a.town < b.town ORDER BY 1, 2
SELECT strftime(day, '%Y-%m') AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month
SELECT DAYNAME(day) AS weekday, COUNT(*) AS n FROM visits GROUP BY weekday ORDER BY weekday
SELECT strftime(day, '%B') AS month, SUM(fee) AS s FROM visits GROUP BY 1 ORDER BY 1
SELECT t.a, t.b FROM (SELECT sex, COUNT(*) FROM people GROUP BY sex) AS t(a, b) ORDER BY a
WITH t(a, b) AS (SELECT sex, COUNT(*) FROM people GROUP BY sex) SELECT MAX(b) AS m FROM t
(SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex) UNION ALL (SELECT town, COUNT(*) FROM people GROUP BY town) ORDER BY k
(SELECT town, COUNT(*) AS n FROM people GROUP BY town) ORDER BY town LIMIT 2
SELECT sex, SQRT(COUNT(*)) AS r FROM people GROUP BY GROUPING SETS ((), (sex)) ORDER BY sex NULLS FIRST
SELECT sex, town, 2 * COUNT(*) - SQRT(4) AS r, GROUPING(town) AS g FROM people GROUP BY ROLLUP (sex, town) ORDER BY sex, town, g
