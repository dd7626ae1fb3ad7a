SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people WHERE age > 20 GROUP BY sex
SELECT FLOOR(age/10)*10 AS decade, COUNT(*), SUM(pay*2) FROM people WHERE pay + 1 > 3 GROUP BY 1 HAVING COUNT(*) > 0.5
SELECT DATE_TRUNC('month', born) AS m, COUNT(*) FROM people WHERE born >= DATE '2026-05-01' GROUP BY m HAVING COUNT(*) > 3 ORDER BY m
SELECT sex, ROUND(AVG(age), 1), SUM(pay)/COUNT(*)*100 AS x, 'c' AS k, 1 + 1 FROM people GROUP BY sex
SELECT COUNT_IF(age > 30), SUM(pay) FILTER (WHERE sex = 'F'), COUNT(*) FILTER (WHERE smoker), VAR_POP(age), STDDEV_SAMP(pay), CORR(age, pay), REGR_SLOPE(pay, age), COVAR_POP(age, pay), REGR_COUNT(pay, age) FROM people
SELECT province, COUNT(*) FROM people JOIN towns ON people.town = towns.town GROUP BY province HAVING COUNT(*) > 0.5
SELECT ward, COUNT(DISTINCT v.patient), SUM(dose) FROM visits v JOIN drugs d ON d.visit = v.visit GROUP BY ward
SELECT p.sex, AVG(cost) FROM patients p JOIN visits v USING (patient) WHERE v.ward = 'A' GROUP BY p.sex
SELECT p.sex, v.ward, COUNT(*), SUM(fee) FROM patients p, visits v WHERE p.patient = v.patient AND p.age > 30 GROUP BY p.sex, v.ward
SELECT SUM(dose) FROM drugs
SELECT sex, SUM(dose), COUNT(*), COUNT(dose) FROM patients p LEFT JOIN visits v ON p.patient = v.patient LEFT JOIN drugs d ON d.visit = v.visit GROUP BY sex
SELECT sex, COUNT(*), COUNT(cost) FROM patients p LEFT JOIN visits v ON p.patient = v.patient AND v.ward = 'B' GROUP BY sex
SELECT AVG(total), COUNT(*) FROM (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient) t
WITH t AS (SELECT patient, ward, SUM(cost) + COUNT(*) AS total FROM visits GROUP BY patient, ward HAVING COUNT(*) > 1) SELECT ward, AVG(total), COUNT(*) FROM t GROUP BY ward
SELECT COUNT(*), SUM(cost) FROM (SELECT patient, cost FROM visits UNION ALL SELECT patient, 5 AS cost FROM visits) u
SELECT COUNT(*) FROM people WHERE town IN (SELECT town FROM towns WHERE inhabitants > 80)
SELECT COUNT(*) FROM people WHERE age > (SELECT MIN(inhabitants) FROM towns) - 40
SELECT COUNT(*) FROM patients WHERE patient IN (SELECT patient FROM visits WHERE cost > 50)
SELECT COUNT(*) FROM patients WHERE patient NOT IN (SELECT patient FROM visits WHERE cost > 50)
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient = p.patient AND cost > 50)
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient = p.patient AND cost > 50) AND sex = 'F'
SELECT DISTINCT sex FROM people
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS g, COUNT(*) FROM people GROUP BY g
SELECT CASE sex WHEN 'F' THEN 1 ELSE 0 END AS g, COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient = b.patient AND a.ward = b.ward
SELECT EXTRACT(MONTH FROM born) AS m, COUNT(*) FROM people GROUP BY 1 ORDER BY 1 DESC LIMIT 5 OFFSET 2
SELECT SUM(CASE WHEN age > 40 AND NOT smoker THEN pay ELSE 0 END), SUM(age % 7), SUM(ABS(age - 50)), SUM(COALESCE(CAST(smoker AS INTEGER), 2)), SUM(LEAST(age, 40)), SUM(GREATEST(age, 40)), SUM(age // 7), SUM(ROUND(pay)), SUM(CEIL(pay)), SUM(-age), SUM(POWER(age, 2)), SUM(SIGN(age - 50)) FROM people
SELECT COUNT(*) FROM people WHERE smoker IS NOT DISTINCT FROM NULL
SELECT COUNT(*) FROM people WHERE NOT smoker OR age BETWEEN 30 AND 20 + 25 AND sex LIKE 'F%'
SELECT COUNT(*) FROM people WHERE pay > age AND born + INTERVAL '1' MONTH > DATE '2026-06-01' AND EXTRACT(DOW FROM born) IN (0, 6)
SELECT UPPER(town) AS t, LEFT(sex, 1) || '!' AS s, COUNT(*) FROM people GROUP BY 1, 2 HAVING COUNT(*) > 0.5
SELECT SUM(DATE_DIFF('day', DATE '2026-01-01', day)), SUM(LENGTH(ward)), SUM(EXTRACT(YEAR FROM day)), SUM(QUARTER(day)), SUM(DAYOFYEAR(day)), SUM(ISODOW(day)) FROM visits
SELECT COUNT(*) FROM (SELECT *, cost * 2 AS double FROM visits WHERE cost > 10) v WHERE double > 60
SELECT AVG(n) FROM (SELECT patient, COUNT(DISTINCT ward) AS n, MIN(cost), MAX(fee) AS f FROM visits GROUP BY patient) x WHERE f > 20
SELECT t.province, AVG(x.total) FROM patients p JOIN (SELECT patient, SUM(fee) AS total FROM visits GROUP BY patient) x ON x.patient = p.patient JOIN towns t ON p.town = t.town GROUP BY t.province HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM (SELECT DISTINCT patient, ward FROM visits) x WHERE ward <> 'A'
SELECT SUM(LEAST(GREATEST(pay / NULLIF(age - 30, 0), 0), 10)) FROM people
SELECT SUM(SQRT(age)), SUM(LN(age)), SUM(EXP(age / 100)), SUM(LOG10(age)) FROM people
SELECT d.drug, SUM(d.dose * v.fee) FROM drugs d JOIN visits v ON v.visit = d.visit JOIN patients p ON p.patient = v.patient WHERE p.sex = 'F' GROUP BY d.drug
SELECT COUNT(*) FROM drugs d JOIN drugs e ON d.visit = e.visit WHERE d.drug = 'p' AND e.drug = 'q'
SELECT sex, COUNT(*) FROM towns t JOIN patients p ON p.town = t.town WHERE t.inhabitants > 80 GROUP BY sex
SELECT p.town, t.inhabitants, COUNT(*) FROM patients p LEFT JOIN (SELECT town, inhabitants FROM towns WHERE inhabitants > 80) t ON t.town = p.town GROUP BY 1, 2 HAVING COUNT(*) > 0.5
SELECT p.sex, COUNT(*) FROM patients p LEFT JOIN visits v ON p.patient = v.patient WHERE v.cost = p.age GROUP BY p.sex HAVING COUNT(*) > 0.5
SELECT COUNT(*), SUM(v.fee) FROM patients p LEFT JOIN visits v USING (patient) WHERE p.age > 30
SELECT COUNT(*) FROM visits v RIGHT JOIN patients p ON p.patient = v.patient
SELECT age // 7 AS w, COUNT(*) FROM people GROUP BY age // 7 HAVING COUNT(*) > 0.5 ORDER BY 1
SELECT v.ward, w.ward, COUNT(*) FROM visits v JOIN visits w ON v.patient = w.patient AND v.visit = w.visit GROUP BY v.ward, w.ward HAVING COUNT(*) > 0.5
SELECT SUM(1), COUNT(1), COUNT('x'), SUM(age)/NULLIF(COUNT(*), 0) FROM people
SELECT sex, AVG(pay) FROM people WHERE (sex = 'F' AND age > 30) OR (sex = 'M' AND age < 50) GROUP BY sex ORDER BY AVG(pay) DESC
SELECT age, COUNT(*) FROM people WHERE age IN (30, 40, 50, 60) GROUP BY age HAVING COUNT(*) > 0.5
SELECT COUNT(DISTINCT p.patient), COUNT(p.patient) FROM patients p JOIN visits v ON v.patient = p.patient
SELECT p.sex, COUNT(*) FROM patients p, visits v WHERE (p.patient = v.patient AND p.age > 40 AND v.ward = 'A') OR (p.patient = v.patient AND p.age <= 40 AND v.ward = 'B') GROUP BY p.sex
SELECT t.province, v.ward, SUM(d.dose) FROM towns t, patients p, visits v, drugs d WHERE t.town = p.town AND p.patient = v.patient AND v.visit = d.visit AND t.inhabitants > 60 GROUP BY t.province, v.ward HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT * FROM drugs WHERE drugs.visit = visits.visit AND dose > 4)
SELECT ward, COUNT(*), SUM(cost) FROM visits WHERE NOT EXISTS (SELECT 1 FROM drugs WHERE visit = visits.visit AND dose > 4) GROUP BY ward
SELECT sex, COUNT(*) FROM patients p JOIN visits v ON p.patient = v.patient WHERE EXISTS (SELECT 1 FROM drugs d WHERE d.visit = v.visit AND drug = 'q') GROUP BY sex
SELECT COUNT(*), SUM(cost) FROM visits WHERE visit IN (SELECT visit FROM drugs GROUP BY visit HAVING SUM(dose) > 6)
SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient = patients.patient AND EXISTS (SELECT 1 FROM drugs WHERE drugs.visit = v.visit AND dose > 5))
SELECT SUM(d.dose) FROM visits v JOIN drugs d ON v.visit = d.visit WHERE EXISTS (SELECT 1 FROM drugs e WHERE e.visit = d.visit AND e.dose > 7) AND NOT EXISTS (SELECT 1 FROM drugs f WHERE f.visit = v.visit AND f.drug = 'p')
SELECT COUNT(*) FROM people WHERE town IN (SELECT a.town FROM towns a, towns b WHERE a.province = b.province AND a.inhabitants < b.inhabitants AND b.town = 'Utrecht' OR a.town = 'Delft')
SELECT COUNT(*) FROM people WHERE town IN (SELECT town FROM towns WHERE province IN (SELECT province FROM towns WHERE inhabitants > 110) OR inhabitants = (SELECT MIN(inhabitants) FROM towns))
SELECT bigger, COUNT(*) FROM people p JOIN (SELECT a.town, b.town AS bigger FROM towns a JOIN towns b USING (province) WHERE a.inhabitants < b.inhabitants) t ON t.town = p.town GROUP BY bigger HAVING COUNT(*) > 0.5
SELECT COUNT(*) FROM people WHERE town ILIKE 'd%' AND NOT town ILIKE '%X%'
SELECT POSITION('d' IN town) AS p, COUNT(*) FROM people GROUP BY p
SELECT AVG(EXTRACT(EPOCH FROM born)) FROM people
SELECT COUNT(*) FROM people WHERE born > MAKE_DATE(2026, 6, 30)
SELECT COUNT(*) FROM patients SEMI JOIN visits USING (patient)
SELECT COUNT(*) FROM patients AS p ANTI JOIN visits AS v ON v.patient = p.patient
SELECT AVG(t.b) FROM (SELECT sex, age FROM people) AS t(a, b) WHERE t.a = 'F'
WITH t(a, b) AS (SELECT sex, age FROM people) SELECT AVG(b) FROM t WHERE a = 'F'
((SELECT COUNT(*) FROM people))
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' END AS g, COUNT(*), SUM(pay) FROM people GROUP BY g
SELECT CASE WHEN smoker THEN 1 WHEN NOT smoker THEN 2 END AS g, COUNT(*) FROM people GROUP BY 1
SELECT CASE sex WHEN 'F' THEN 1 WHEN 'M' THEN 2 END AS g, COUNT(*) FROM people GROUP BY 1
SELECT CASE WHEN age > 30 AND town = 'Delft' THEN sex END AS g, COUNT(*) FROM people GROUP BY g
SELECT NULLIF(sex, 'F') AS g, NULLIF(age // 30, 7) AS h, COUNT(*) FROM people GROUP BY g, h HAVING COUNT(*) > 0.5
SELECT CASE WHEN smoker THEN 'yes' END AS g, COUNT(*) FROM people WHERE smoker GROUP BY g
SELECT AVG(n) FROM (SELECT patient, CASE WHEN cost > 50 THEN 'dear' END AS g, COUNT(*) AS n FROM visits GROUP BY patient, g) t
