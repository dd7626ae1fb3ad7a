-- FROM
SELECT t.x, COUNT(*) AS n FROM people AS p JOIN towns AS t(x, y, z) ON t.x = p.town GROUP BY t.x HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM (patients p JOIN visits v ON p.patient = v.patient)
SELECT p.sex, COUNT(*) FROM (patients p JOIN visits v USING (patient)) JOIN drugs d ON d.visit = v.visit GROUP BY p.sex
SELECT COUNT(*), SUM(dose) FROM patients p JOIN (visits v JOIN drugs d ON d.visit = v.visit) ON p.patient = v.patient
SELECT COUNT(*) FROM (patients p JOIN visits v USING (patient)) AS j WHERE j.sex = 'F'
SELECT COUNT(*) FROM (SELECT * EXCLUDE (pay) FROM people) t WHERE age > 30
SELECT COUNT(*) FROM (SELECT patient FROM visits UNION SELECT patient FROM patients) t
SELECT COUNT(*) FROM (SELECT patient FROM patients EXCEPT SELECT patient FROM visits) t
SELECT COUNT(*) FROM (SELECT patient FROM patients INTERSECT SELECT patient FROM visits WHERE cost > 50) t
FROM people SELECT sex, COUNT(*) GROUP BY sex
SELECT COUNT(*) FROM people SEMI JOIN towns USING (town)
SELECT COUNT(*) FROM people ANTI JOIN (SELECT town FROM towns WHERE inhabitants > 80) t USING (town)
SELECT COUNT(*) FROM people AS p(a, b) WHERE a > 30 AND b = 'F' AND smoker
SELECT COUNT(*) FROM towns AS p(a) JOIN people ON people.town = p.a WHERE inhabitants > 80
SELECT t.a, n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t(a)
SELECT COUNT(*), SUM(cost) FROM (SELECT patient, cost, fee FROM visits UNION ALL BY NAME SELECT fee, cost, patient FROM visits) u
SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL BY NAME SELECT COUNT(*) AS n, town AS k FROM people GROUP BY town
SELECT sex AS k, COUNT(*) > 1 AS n FROM people GROUP BY sex UNION BY NAME SELECT COUNT(*) > 1 AS n, sex AS k FROM patients GROUP BY sex
SELECT COUNT(*), SUM(cost), AVG(age) FROM patients p FULL JOIN visits v ON p.patient = v.patient
SELECT p.sex, COUNT(*) AS n FROM (SELECT * FROM patients WHERE age > 40) p FULL OUTER JOIN visits v USING (patient) GROUP BY p.sex HAVING COUNT(*) > 0.5
SELECT COUNT(DISTINCT patient), COUNT(*), COUNT(age), COUNT(ward) FROM (SELECT * FROM patients WHERE sex = 'F') p FULL JOIN (SELECT * FROM visits WHERE ward = 'A') v USING (patient)
SELECT COUNT(*), COUNT(a.cost), COUNT(b.cost), SUM(a.cost) FROM (SELECT * FROM visits WHERE ward = 'A') a FULL JOIN (SELECT * FROM visits WHERE ward <> 'B') b ON a.patient = b.patient AND a.ward = b.ward
SELECT COUNT(*) FROM patients p FULL JOIN visits v ON p.patient = v.patient WHERE v.ward IS NULL
SELECT COUNT(DISTINCT who), AVG(n) FROM (SELECT COALESCE(p.patient, v.patient) AS who, COUNT(*) AS n FROM (SELECT * FROM patients WHERE age > 60) p FULL JOIN visits v ON v.patient = p.patient GROUP BY COALESCE(p.patient, v.patient)) t
SELECT COUNT(*), SUM(v.cost) FROM patients NATURAL JOIN visits v
SELECT province, COUNT(*) FROM people NATURAL JOIN towns GROUP BY province HAVING COUNT(*) > 0.5
SELECT sex, n, m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) a NATURAL JOIN (SELECT sex, AVG(age) AS m FROM people GROUP BY sex) b ORDER BY sex
SELECT * FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a NATURAL FULL JOIN towns ORDER BY town
SELECT DISTINCT ON (sex) sex, town, n FROM (SELECT sex, town, COUNT(*) AS n FROM people GROUP BY sex, town) t ORDER BY sex, n DESC, town LIMIT 1
SELECT DISTINCT ON (1) town, sex, SUM(pay) AS n FROM people GROUP BY town, sex ORDER BY town, n DESC
SELECT AVG(cost), COUNT(*) FROM (SELECT DISTINCT ON (patient) patient, cost FROM visits ORDER BY patient, day DESC, cost) t
SELECT t.most, COUNT(*) AS n FROM people p JOIN (SELECT town, MAX(inhabitants) AS most FROM towns GROUP BY 1) t USING (town) GROUP BY t.most HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM people WHERE (sex, town) IN (('F', 'Delft'), ('M', 'Gouda'))
-- references to the query around
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM towns t WHERE t.town = p.town AND t.inhabitants > p.age)
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM towns t WHERE t.town = p.town AND t.inhabitants > p.age + 20)
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM towns t WHERE t.town = p.town AND t.inhabitants <> p.age)
SELECT COUNT(*) FROM people p WHERE p.age > (SELECT MIN(inhabitants) FROM towns t WHERE t.town = p.town) - 20 OR p.age < (SELECT COUNT(*) FROM towns t WHERE t.town = p.town) + 20
SELECT COUNT(*) FROM people p WHERE p.town IN (SELECT t.town FROM towns t WHERE t.inhabitants > p.age)
SELECT COUNT(*), SUM(age) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient = p.patient AND v.cost > p.age)
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient = p.patient AND v.cost >= p.age)
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient AND w.ward = v.ward AND w.cost > 50)
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient AND w.visit <> v.visit)
SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient AND w.ward <> v.ward)
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient AND w.cost <> v.cost) AND v.ward = 'A'
SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.patient = v.patient AND w.cost < v.cost)
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient AND p.age < v.cost) OR v.ward = 'A'
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM towns t WHERE t.town = p.town AND t.inhabitants > 80)
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM towns t WHERE t.town = p.town AND t.inhabitants > 80)
SELECT COUNT(*) FROM visits v WHERE (v.patient, v.ward) IN (SELECT patient, ward FROM visits WHERE cost > 50)
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(cost) FROM visits w WHERE w.patient = v.patient)
SELECT sex, COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM visits v WHERE v.patient = p.patient) > 2 GROUP BY sex
SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM visits v WHERE v.patient = p.patient AND ward = 'A') = 0
SELECT COUNT(*) FROM visits v WHERE v.patient = ANY (SELECT patient FROM patients WHERE age > 40)
-- windows over a person's rows
SELECT COUNT(*), SUM(cost) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day, cost, fee DESC NULLS LAST) AS r FROM (SELECT *, 1 AS one FROM visits) v) t WHERE r <= 2 AND one = 1
SELECT ward, SUM(cost) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS r FROM visits) t WHERE r <= 2 GROUP BY ward
SELECT COUNT(*) FROM (SELECT patient, ward, ROW_NUMBER() OVER (PARTITION BY patient, ward ORDER BY day) AS r FROM visits) t WHERE r = 1
SELECT COUNT(*), SUM(fee) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day DESC) BETWEEN 1 AND 2) t
SELECT COUNT(*) FROM (SELECT *, RANK() OVER (PARTITION BY patient ORDER BY ward) AS r FROM visits) t WHERE r = 1
SELECT COUNT(*), SUM(r) FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY patient ORDER BY cost DESC) AS r FROM visits) t WHERE r > 1
SELECT COUNT(*) FROM (SELECT cost, AVG(cost) OVER (PARTITION BY patient) AS m, COUNT(*) OVER (PARTITION BY patient) AS n FROM visits) t WHERE cost > m AND n > 1
SELECT SUM(top - low) FROM (SELECT MAX(fee) OVER (PARTITION BY patient) AS top, MIN(fee) OVER (PARTITION BY patient) AS low FROM visits) t
-- aggregates
SELECT COUNT(DISTINCT (sex, town)) FROM people
SELECT MAX(DISTINCT age) - MAX(DISTINCT age) AS d, COUNT(*) FROM people
SELECT FAVG(age), FSUM(age), MEAN(age) FROM people
SELECT GEOMEAN(age) FROM people
SELECT sex, town, COUNT(*) AS n FROM people GROUP BY ALL HAVING COUNT(*) > 0.5
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY ALL
-- days
SELECT COUNT(*) FROM visits WHERE strftime(day, '%Y-%m') = '2026-03'
SELECT COUNT(*) FROM visits WHERE strftime(day, '%d.%m.%Y') > '15' AND strftime(day, '%Y-%m-%d') < '2026-09-30'
SELECT COUNT(*) FROM visits WHERE DAYNAME(day) IN ('Saturday', 'Sunday') AND MONTHNAME(day) <> 'March'
SELECT COUNT(*) FILTER (WHERE DAYNAME(day) = 'Monday') FROM visits
SELECT CASE WHEN DAYNAME(day) IN ('Saturday', 'Sunday') THEN 'weekend' ELSE 'week' END AS w, COUNT(*) FROM visits GROUP BY w
SELECT make_date(YEAR(day), MONTH(day), 1) AS m, COUNT(*) FROM visits GROUP BY m HAVING COUNT(*) > 0.5
SELECT make_date(EXTRACT(YEAR FROM day), 1, 1) AS y, COUNT(*) FROM visits GROUP BY y
SELECT LAST_DAY(day) AS l, COUNT(*) FROM visits GROUP BY l HAVING COUNT(*) > 0.5
SELECT EXTRACT(WEEK FROM day) AS w, COUNT(*) FROM visits GROUP BY w HAVING COUNT(*) > 0.5
SELECT WEEK(born) AS w, SUM(WEEKOFYEAR(born)) FROM people GROUP BY w HAVING COUNT(*) > 0.5
SELECT datepart('month', day) AS m, WEEKDAY(day) AS w, COUNT(*) FROM visits GROUP BY m, w HAVING COUNT(*) > 0.5
SELECT strftime(day, '%d.') AS d, COUNT(*) AS n FROM visits GROUP BY d HAVING COUNT(*) > 0.5
SELECT strftime(day, '%u') AS d, COUNT(*) AS n FROM visits GROUP BY d
SELECT strftime(day, '%G-W%V') AS d, COUNT(*) AS n FROM visits GROUP BY d HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM visits WHERE strftime(day, '%j') < '100' AND strftime(day, '%V') > '02'
SELECT EXTRACT(ISOYEAR FROM day) AS y, COUNT(*) FROM visits GROUP BY y HAVING COUNT(*) > 0.5
-- texts
SELECT COUNT(*) FROM people WHERE STARTS_WITH(town, 'D') OR ENDS_WITH(town, 'a') AND NOT CONTAINS(town, 'ou')
SELECT STARTS_WITH(town, 'D') AS g, COUNT(*) FROM people GROUP BY g
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(town, '^D') OR REGEXP_MATCHES(town, 'da$')
SELECT COUNT(*) FROM people WHERE town LIKE 'D!e%' ESCAPE '!' OR town LIKE '%!a' ESCAPE '!'
SELECT LPAD(town, 8, '.') AS s, RPAD(town, 3, '-') AS r, COUNT(*) FROM people GROUP BY s, r HAVING COUNT(*) > 0.5
SELECT SPLIT_PART(town, 'e', 1) AS s, COUNT(*) FROM people GROUP BY s
SELECT COUNT(*) FROM people WHERE age = ANY([30, 31, 40])
SELECT REVERSE(town) AS s, TRANSLATE(town, 'ade', 'xy') AS t, COUNT(*) FROM people GROUP BY s, t HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM people WHERE CONCAT_WS('-', sex, town) = 'F-Delft'
SELECT CONCAT_WS(', ', town, NULL, 'x', sex) AS s, COUNT(*) FROM people GROUP BY s HAVING COUNT(*) > 0.5
SELECT TRANSLATE(town, 'el', 'x') AS t, REVERSE(town) AS r, CONCAT_WS('-', town, n) AS c FROM (SELECT town, CAST(COUNT(*) > 1 AS VARCHAR) AS n FROM people GROUP BY town) t
SELECT COUNT(*) FROM people WHERE town SIMILAR TO '(D|G).*'
SELECT COUNT(*) FROM people WHERE town NOT SIMILAR TO '[A-F].l?ft|.{6}' OR sex SIMILAR TO 'F|X'
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(town, '^(Del|Go)|en$') AND REGEXP_FULL_MATCH(town, '.+[a-f].?n?')
SELECT STRING_AGG(town, ', ' ORDER BY province DESC, town) AS t FROM towns
SELECT sex, STRING_AGG(town || ' ' || n, '; ' ORDER BY town) AS t FROM (SELECT sex, town, COUNT(*) AS n FROM people GROUP BY sex, town) AS t GROUP BY sex
SELECT STRING_AGG(DISTINCT sex, ',' ORDER BY sex) AS s, STRING_AGG(town, '' ORDER BY n DESC, town) FILTER (WHERE n > 20) AS t FROM (SELECT sex, town, SUM(age) AS n FROM people GROUP BY sex, town) AS t
SELECT DISTINCT sex, town, COUNT(*) OVER (PARTITION BY town, sex) AS n, SUM(pay) OVER (PARTITION BY sex, town) AS s FROM people
SELECT COUNT(DISTINCT patient) FILTER (WHERE cost > 50) * 100.0 / COUNT(DISTINCT patient) AS share, COUNT(*) FROM visits WHERE ward <> 'C'
SELECT COUNT(DISTINCT CASE WHEN cost > 90 AND sex = 'F' THEN patient END) AS n FROM visits JOIN patients USING (patient)
SELECT ward, COUNT(DISTINCT IF(cost > 90, patient, NULL)) AS n FROM visits GROUP BY ward HAVING COUNT(DISTINCT patient) FILTER (WHERE cost > 90) > 0.5
SELECT COUNT(*) FROM people WHERE age > (SELECT (MAX(inhabitants) - 2 * MIN(inhabitants)) / 7 - AVG(inhabitants) / 100 + 1 FROM towns WHERE inhabitants < 300)
