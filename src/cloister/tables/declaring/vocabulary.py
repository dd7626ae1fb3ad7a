"""What columns of common names usually hold: kinds and bounds from public knowledge, by the name alone.

A suggestion is a function of the column's name and of today's year; rows have no part in it. So what it says about a table is what
its list of columns tells, which a declaration publishes anyhow. Each comes with the public reason, for the owner to check: a
vocabulary knows what ages are, and not whom a study took.

A name is read as words. It is known where its last words are (`patient_age`), or its first words before a unit, a number or a
moment (`age_at_entry`, `weight_kg`, `sbp_2`). `age_group` is not an age. What stands in brackets is read last, where it gives
codes: `Sex (1=male, 2=female)` has the categories 1 and 2, and of `Sex (1=male)` the owner has to say the other.
"""

# ruff: noqa: E501 - one entry, one line

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from cloister.tables.declaring.draft import ColumnDraft, words

_COUNTRIES = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG "
    "CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL "
    "GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA "
    "LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP "
    "NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV "
    "SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"
)
_CHAPTERS = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII"
_YEAR = "{year}"
_CODED = "the codes that the column's name gives"
_DIRECT = "it identifies people directly"

_KNOWN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # names, separated by commas; kind and bounds or categories; the public reason, or why it is dropped
    ("age, alter, leeftijd, edad, eta, idade, age in years, 年龄, 年齢", ("integer", "0", "120"), "human ages in years"),
    ("sex, geschlecht, geslacht, sexe, sexo, sesso", ("category", "F", "M"), "the two letters that registers write"),
    ("性别, 性別", ("category", "男", "女"), "the two words that registers write"),
    ("gender", ("category", "female", "male", "other"), "the three words of common questionnaires"),
    (
        "date of birth, birth date, birthdate, dob, born, geburtsdatum, geboortedatum, date de naissance, fecha de nacimiento, "
        "data di nascita, 出生日期, 生年月日",
        ("date", "1900-01-01", "{year}-12-31"),
        "births of people alive since the register began",
    ),
    ("birth year, year of birth, yob, geburtsjahr, geboortejaar, 出生年份", ("integer", "1900", _YEAR), "births since 1900"),
    ("death date, date of death, dod, deceased date", ("date", "1900-01-01", "{year}-12-31"), "deaths since 1900"),
    ("year, jahr, jaar, annee, ano, anno, 年份", ("integer", "1900", _YEAR), "years since 1900"),
    (
        "monthly income, income monthly, monthly salary, monthly wage, monthly pay, monthly earnings, monatseinkommen, 月收入, 月収",
        ("real", "0", "50000", "1"),
        "monthly incomes in published scales; higher ones count as the upper bound",
    ),
    ("month, monat, maand, mois, mes, mese, 月份", ("integer", "1", "12"), "months of a year"),
    ("weekday, day of week, dow, wochentag", ("integer", "1", "7"), "days of a week"),
    ("week, calendar week, iso week, kw", ("integer", "1", "53"), "weeks of a year"),
    ("hour, hour of day, stunde, uur, heure", ("integer", "0", "23"), "hours of a day"),
    ("quarter, quartal, trimestre", ("integer", "1", "4"), "quarters of a year"),
    ("country, country code, country of birth, birth country, geburtsland, land, pays, pais, nationality, citizenship, 国籍, 出生国", ("category", *_COUNTRIES.split()), "ISO 3166-1 codes"),
    ("icd 10 chapter, icd chapter, diagnosis chapter", ("category", *_CHAPTERS.split()), "the chapters of ICD-10"),
    ("icd 10, icd 10 code, icd, icd code, diagnosis code, dx code, main diagnosis, diagnosis, diagnose, dx, 诊断, 診断", ("text",), ""),
    ("postcode, postal code, zip, zip code, zipcode, plz, code postal, cap, cep, 邮编, 邮政编码, 郵便番号", ("text",), ""),
    (
        "marital status, civil status, familienstand, estado civil, stato civile, burgerlijke staat",
        ("category", "single", "married", "widowed", "divorced", "separated"),
        "the statuses that censuses of the United Nations' recommendations count",
    ),
    ("婚姻状况", ("category", "未婚", "有配偶", "离婚", "丧偶"), "the statuses of China's census"),
    (
        "race",
        (
            "category", "American Indian or Alaska Native", "Asian", "Black or African American",
            "Native Hawaiian or Other Pacific Islander", "White",
        ),
        "the categories of the United States' OMB (1997)",
    ),
    (
        "ethnicity, ethnic group, hispanic origin",
        ("category", "Hispanic or Latino", "Not Hispanic or Latino"),
        "the categories of the United States' OMB (1997)",
    ),
    (
        "employment status, labour force status, labor force status, work status, erwerbsstatus",
        ("category", "employed", "unemployed", "outside the labour force"),
        "the three statuses of the ILO",
    ),
    (
        "education, bildung, ausbildung, opleiding, formation, educacion, 学历, 最終学歴, occupation, job, job title, profession, beruf, "
        "beroep, metier, ocupacion, 职业, 職業",
        ("text",),
        "",
    ),
    (
        "region, state, province, county, district, canton, bundesland, kanton, provincie, departement, provincia, 省份, 地区, "
        "language, native language, mother tongue, first language, sprache, muttersprache, taal, langue, idioma, lingua, 语言, 言語",
        ("text",),
        "",
    ),
    ("city, town, municipality, ort, stad, ville, ciudad", ("text",), ""),
    (
        "income, salary, wage, wages, pay, earnings, annual income, household income, einkommen, gehalt, inkomen, salaire, revenu, "
        "ingreso, 收入, 年収",
        ("real", "0", "500000", "1"),
        "yearly incomes in published scales; higher ones count as the upper bound",
    ),
    ("height, height cm, groesse, koerpergroesse, lengte, taille, 身高", ("real", "40", "230", "0.1"), "human heights in cm"),
    ("weight, weight kg, body weight, gewicht, koerpergewicht, poids, peso, 体重", ("real", "0", "300", "0.1"), "human weights in kg"),
    ("bmi, body mass index", ("real", "10", "80", "0.1"), "values that clinics take for possible"),
    ("systolic, sbp, systolic bp, systolic blood pressure, sys bp, rr sys", ("integer", "50", "300"), "readings in mmHg that devices show"),
    ("diastolic, dbp, diastolic bp, diastolic blood pressure, dia bp, rr dia", ("integer", "20", "200"), "readings in mmHg that devices show"),
    ("heart rate, pulse, hr, puls, hartslag", ("integer", "20", "250"), "beats a minute that devices show"),
    ("temperature, body temperature, temp", ("real", "30", "45", "0.1"), "body temperatures in °C"),
    ("oxygen saturation, spo2, sao2, spo 2, sao 2", ("integer", "50", "100"), "per cent that devices show"),
    ("hba1c, hba 1c, hb a1c, hba 1 c", ("real", "3", "20", "0.1"), "per cent that laboratories report"),
    ("cholesterol, total cholesterol", ("real", "0", "500", "1"), "mg/dl that laboratories report"),
    ("glucose, blood sugar, blood glucose", ("real", "0", "600", "1"), "mg/dl that laboratories report"),
    ("blood group, blood type, blutgruppe", ("category", "A", "B", "AB", "0"), "the AB0 groups"),
    ("pain, pain score, nrs, vas", ("integer", "0", "10"), "the numeric rating scale"),
    ("asa, asa score, asa class", ("integer", "1", "6"), "the ASA classes"),
    ("gcs, glasgow coma scale", ("integer", "3", "15"), "the Glasgow coma scale"),
    ("apgar, apgar score", ("integer", "0", "10"), "the Apgar score"),
    ("phq 9, phq 9 score", ("integer", "0", "27"), "the sum of the PHQ-9"),
    ("gad 7, gad 7 score", ("integer", "0", "21"), "the sum of the GAD-7"),
    ("mmse, mmse score", ("integer", "0", "30"), "the mini-mental state examination"),
    ("length of stay, los, days in hospital, liegedauer", ("integer", "0", "365"), "stays of up to a year"),
    ("children, number of children, kids, kinder", ("integer", "0", "15"), "children of one person"),
    ("household size, hh size, persons in household", ("integer", "1", "20"), "people in one household"),
    ("hours, hours per week, weekly hours, working hours", ("integer", "0", "168"), "hours of a week"),
    ("years of education, education years, schooling years", ("integer", "0", "30"), "years at school and university"),
    ("isced, isced level, education level, educational level", ("integer", "0", "8"), "the levels of ISCED 2011"),
    ("percent, percentage, pct, per cent, prozent, procent", ("real", "0", "100", "0.1"), "per cent of a whole"),
    ("latitude, lat", ("real", "-90", "90", "0.001"), "degrees on the earth"),
    ("longitude, lon, lng", ("real", "-180", "180", "0.001"), "degrees on the earth"),
    (
        "smoker, smoking, diabetes, diabetic, hypertension, pregnant, deceased, died, dead, alive, married, employed, retired, consent, "
        "vaccinated, readmitted, raucher, roker, fumeur, fumador",
        ("boolean",),
        "",
    ),
    (
        "visit date, admission date, discharge date, date of visit, date of admission, encounter date, interview date, event date, "
        "date of diagnosis, diagnosis date, "
        "aufnahmedatum, opnamedatum, date, datum, fecha",
        ("date",),
        "",
    ),
    (
        "patient id, person id, subject id, participant id, respondent id, member id, customer id, client id, user id, student id, "
        "employee id, patient, pid, pseudonym, mrn, fallnummer, patientennummer, patientnummer, id",
        ("identifier",),
        "",
    ),
    (
        "name, first name, last name, surname, given name, full name, vorname, nachname, nom, prenom, nombre, apellido, 姓名, email, "
        "e mail, mail, phone, phone number, telephone, telefon, mobile, address, street, adresse, strasse, ssn, bsn, "
        "social security number, iban, passport, ip, ip address",
        ("",),
        _DIRECT,
    ),
    (
        "notes, note, comment, comments, remarks, free text, bemerkung, kommentar, opmerking, commentaire",
        ("",),
        "free text can hold anything about anybody",
    ),
)  # fmt: skip
_AROUND = frozenset(
    "in at on of year years yr yrs jahre jahren cm kg mm hg mmhg g lb m bpm eur euro euros usd dollars gbp chf cny rmb k c celsius "  # noqa: SIM905
    "per annum month monthly yearly annual baseline entry visit admission discharge inclusion enrolment enrollment today now "
    "first last value measured self reported".split()
)
_BEFORE = 3
_PERIODS = frozenset("month monthly monatlich monat mensuel week weekly hour hourly day daily".split())  # noqa: SIM905
_COUNTS = frozenset(["n", "no", "num", "number", "count", "anzahl", "nombre"])
_YEARLY = "yearly "
_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_CODE = re.compile(r"(\w+)\s*[=:]\s*\w+")


def suggest(names: Iterable[str], *, today: datetime.date | None = None) -> dict[str, ColumnDraft]:
    """What columns of these names usually hold, by the names alone; those that are not known are left out.

    >>> found = suggest(["PatientAge", "sbp_2", "age_group", "E-Mail"], today=datetime.date(2026, 3, 1))
    >>> {name: (draft.kind, draft.low, draft.high) for name, draft in found.items()}
    {'PatientAge': ('integer', '0', '120'), 'sbp_2': ('integer', '50', '300'), 'E-Mail': ('', '', '')}
    >>> suggest(["dob"], today=datetime.date(2026, 3, 1))["dob"].high
    '2026-12-31'
    """
    year = str((today or datetime.date.today()).year)
    found = {name: _known(name) for name in names}
    return {name: replace(draft, high=draft.high.replace("{year}", year)) for name, draft in found.items() if draft is not None}


def _known(name: str) -> ColumnDraft | None:
    """What the name says, and else what it says without its brackets, with the codes that stand in them."""
    name = name.replace("/", " per ")
    found = _named(words(name))
    inside = [each for part in _BRACKETS.findall(name) for each in _CODE.findall(part)]
    if found is None or inside:
        found = _named(words(_BRACKETS.sub(" ", name)))
    if found is None or not inside or found.kind not in ("category", "boolean", "text", "integer"):
        return found
    codes = tuple(dict.fromkeys(inside))
    return ColumnDraft(kind="category", values=codes if len(codes) > 1 else (), reason=_CODED if len(codes) > 1 else "")


def _named(said: list[str]) -> ColumnDraft | None:
    """The entry of the longest run of words that ends the name, without the neutral words behind it where there is none.

    Of `age at diagnosis` the words before the moment are looked at first, and a number of things is none of them.
    """
    whole = _entries().get(" ".join(said))
    if whole is not None:
        return whole
    if "at" in said[1:]:
        return _named(said[: said.index("at", 1)])
    if said[:1] and said[0] in _COUNTS:
        return None
    periods = _PERIODS.intersection(said)
    if "per" in said[1:]:
        known = _named(said[: said.index("per", 1)])
        return known and _of_period(known, periods)
    while said:
        for start in range(min(len(said), _BEFORE + 1)):
            known = _entries().get(" ".join(said[start:]))
            if known is not None and not (start and said[start:] == ["name"]):  # hospital_name names no person
                return _of_period(known, periods)
        if not (said[-1].isdigit() or said[-1] in _AROUND):
            return None
        said = said[:-1]
    return None


def _of_period(known: ColumnDraft, periods: frozenset[str]) -> ColumnDraft | None:
    """A scale of years is not one of months: monthly incomes have their own, and others none."""
    if not periods or not known.reason.startswith(_YEARLY):
        return known
    return _entries()["monthly income"] if all(each.startswith(("mon", "men")) for each in periods) else None


@cache
def _entries() -> Mapping[str, ColumnDraft]:
    found: dict[str, ColumnDraft] = {}
    for names, (kind, *said), reason in _KNOWN:
        if kind == "category":
            draft = ColumnDraft(kind=kind, values=tuple(said), reason=reason)
        else:
            low, high, step = (*said, "", "", "")[:3]
            reason, about = (reason, "") if kind else ("", reason)
            draft = ColumnDraft(kind=kind, low=low, high=high, step=step, reason=reason, about=about)
        found |= {" ".join(words(name)): draft for name in names.split(",")}
    return found


def reasons() -> tuple[str, ...]:
    """Every reason that a suggestion gives."""
    told = (draft.reason or draft.about for draft in _entries().values())
    return tuple(dict.fromkeys(each for each in (*told, _CODED) if each))
