"""The catalogue's own tables: which columns PostgreSQL 15 has in them, as far as clients look.

Facts of PostgreSQL's interface, a line a table: its name, then its columns by type. `+` is a type that all following names have.
Most tables are always empty here, since nothing has an index, a trigger or a rule.
"""

_WORDS = """
+oid:UINTEGER +oids:UINTEGER[] +text:VARCHAR +texts:VARCHAR[] +bool:BOOLEAN +int2:SMALLINT
+int2s:SMALLINT[] +int4:INTEGER +int8:BIGINT +real:FLOAT +time:TIMESTAMP
"""
_TYPES = dict(each.split(":") for each in _WORDS.split())

_PG = """
pg_aggregate +oid aggfnoid aggtransfn +text aggkind
pg_am +oid oid amhandler +text amname amtype
pg_amop +oid oid amopfamily amoplefttype amoprighttype +int2 amopstrategy +text amoppurpose +oid amopopr amopmethod amopsortfamily
pg_amproc +oid oid amprocfamily amproclefttype amprocrighttype +int2 amprocnum +oid amproc
pg_attrdef +oid oid adrelid +int2 adnum +text adbin
pg_attribute +oid attrelid +text attname +oid atttypid +int4 attstattarget +int2 attlen attnum +int4 attndims attcacheoff atttypmod +bool attbyval +text attalign attstorage attcompression +bool attnotnull atthasdef atthasmissing +text attidentity attgenerated +bool attisdropped attislocal +int4 attinhcount +oid attcollation +texts attacl attoptions attfdwoptions +text attmissingval
pg_auth_members +oid roleid member grantor +bool admin_option
pg_available_extensions +text name default_version installed_version comment
pg_cast +oid oid castsource casttarget castfunc +text castcontext castmethod
pg_class +oid oid +text relname +oid relnamespace reltype reloftype relowner relam relfilenode reltablespace +int4 relpages +real reltuples +int4 relallvisible +oid reltoastrelid +bool relhasindex relisshared +text relpersistence relkind +int2 relnatts relchecks +bool relhasrules relhastriggers relhassubclass relrowsecurity relforcerowsecurity relispopulated +text relreplident +bool relispartition +oid relrewrite relfrozenxid relminmxid +texts relacl reloptions +text relpartbound
pg_collation +oid oid +text collname +oid collnamespace collowner +text collprovider +bool collisdeterministic +int4 collencoding +text collcollate collctype colliculocale collversion
pg_constraint +oid oid +text conname +oid connamespace +text contype +bool condeferrable condeferred convalidated +oid conrelid contypid conindid conparentid confrelid +text confupdtype confdeltype confmatchtype +bool conislocal +int4 coninhcount +bool connoinherit +int2s conkey confkey +oids conpfeqop conppeqop conffeqop +int2s confdelsetcols +oids conexclop +text conbin
pg_conversion +oid oid +text conname +oid connamespace conowner +int4 conforencoding contoencoding +oid conproc +bool condefault
pg_cursors +text name statement +bool is_holdable is_binary is_scrollable +time creation_time
pg_database +oid oid +text datname +oid datdba +int4 encoding +text datlocprovider +bool datistemplate datallowconn +int4 datconnlimit +oid datfrozenxid datminmxid dattablespace +text datcollate datctype daticulocale datcollversion +texts datacl
pg_db_role_setting +oid setdatabase setrole +texts setconfig
pg_default_acl +oid oid defaclrole defaclnamespace +text defaclobjtype +texts defaclacl
pg_depend +oid classid objid +int4 objsubid +oid refclassid refobjid +int4 refobjsubid +text deptype
pg_description +oid objoid classoid +int4 objsubid +text description
pg_enum +oid oid enumtypid +real enumsortorder +text enumlabel
pg_event_trigger +oid oid +text evtname evtevent +oid evtowner evtfoid +text evtenabled +texts evttags
pg_extension +oid oid +text extname +oid extowner extnamespace +bool extrelocatable +text extversion +oids extconfig +texts extcondition
pg_foreign_data_wrapper +oid oid +text fdwname +oid fdwowner fdwhandler fdwvalidator +texts fdwacl fdwoptions
pg_foreign_server +oid oid +text srvname +oid srvowner srvfdw +text srvtype srvversion +texts srvacl srvoptions
pg_foreign_table +oid ftrelid ftserver +texts ftoptions
pg_group +text groname +oid grosysid +oids grolist
pg_index +oid indexrelid indrelid +int2 indnatts indnkeyatts +bool indisunique indnullsnotdistinct indisprimary indisexclusion indimmediate indisclustered indisvalid indcheckxmin indisready indislive indisreplident +int2s indkey +oids indcollation indclass +int2s indoption +text indexprs indpred
pg_indexes +text schemaname tablename indexname tablespace indexdef
pg_inherits +oid inhrelid inhparent +int4 inhseqno +bool inhdetachpending
pg_init_privs +oid objoid classoid +int4 objsubid +text privtype +texts initprivs
pg_language +oid oid +text lanname +oid lanowner +bool lanispl lanpltrusted +oid lanplcallfoid laninline lanvalidator +texts lanacl
pg_largeobject_metadata +oid oid lomowner +texts lomacl
pg_locks +text locktype +oid database relation +int4 pid +text mode +bool granted
pg_matviews +text schemaname matviewname matviewowner tablespace +bool hasindexes ispopulated +text definition
pg_namespace +oid oid +text nspname +oid nspowner +texts nspacl
pg_opclass +oid oid opcmethod +text opcname +oid opcnamespace opcowner opcfamily opcintype +bool opcdefault +oid opckeytype
pg_operator +oid oid +text oprname +oid oprnamespace oprowner +text oprkind +oid oprleft oprright oprresult oprcom oprnegate oprcode oprrest oprjoin +bool oprcanmerge oprcanhash
pg_opfamily +oid oid opfmethod +text opfname +oid opfnamespace opfowner
pg_partitioned_table +oid partrelid +text partstrat +int2 partnatts +oid partdefid +int2s partattrs
pg_policies +text schemaname tablename policyname permissive +texts roles +text cmd qual with_check
pg_policy +oid oid +text polname +oid polrelid +text polcmd +bool polpermissive +oids polroles +text polqual polwithcheck
pg_prepared_statements +text name statement +time prepare_time +texts parameter_types +bool from_sql +int8 generic_plans custom_plans
pg_proc +oid oid +text proname +oid pronamespace proowner prolang +real procost prorows +oid provariadic +text prokind +bool prosecdef proleakproof proisstrict proretset +text provolatile proparallel +int2 pronargs pronargdefaults +oid prorettype +oids proargtypes proallargtypes +texts proargmodes proargnames +text proargdefaults prosrc probin +texts proconfig proacl
pg_publication +oid oid +text pubname +oid pubowner +bool puballtables pubinsert pubupdate pubdelete pubtruncate pubviaroot
pg_publication_namespace +oid oid pnpubid pnnspid
pg_publication_rel +oid oid prpubid prrelid +text prqual +int2s prattrs
pg_range +oid rngtypid rngsubtype rngmultitypid rngcollation rngsubopc rngcanonical rngsubdiff
pg_rewrite +oid oid +text rulename +oid ev_class +text ev_type ev_enabled +bool is_instead +text ev_qual ev_action
pg_roles +text rolname +bool rolsuper rolinherit rolcreaterole rolcreatedb rolcanlogin rolreplication +int4 rolconnlimit +text rolpassword +time rolvaliduntil +bool rolbypassrls +texts rolconfig +oid oid
pg_rules +text schemaname tablename rulename definition
pg_seclabel +oid objoid classoid +int4 objsubid +text provider label
pg_sequence +oid seqrelid seqtypid +int8 seqstart seqincrement seqmax seqmin seqcache +bool seqcycle
pg_sequences +text schemaname sequencename sequenceowner
pg_settings +text name setting unit category short_desc extra_desc context vartype source min_val max_val +texts enumvals +text boot_val reset_val sourcefile +int4 sourceline +bool pending_restart
pg_shdepend +oid dbid classid objid +int4 objsubid +oid refclassid refobjid +text deptype
pg_shdescription +oid objoid classoid +text description
pg_stat_activity +oid datid +text datname +int4 pid +oid usesysid +text usename application_name client_addr +time backend_start query_start +text state query backend_type
pg_stat_wal_receiver +int4 pid +text status
pg_stat_user_tables +oid relid +text schemaname relname +int8 n_live_tup n_dead_tup
pg_statistic_ext +oid oid stxrelid +text stxname +oid stxnamespace stxowner +int4 stxstattarget +int2s stxkeys +texts stxkind +text stxexprs
pg_subscription +oid oid subdbid +text subname +oid subowner +bool subenabled subbinary substream +text subtwophasestate +bool subdisableonerr +text subconninfo subslotname subsynccommit +texts subpublications +text subskiplsn
pg_tables +text schemaname tablename tableowner tablespace +bool hasindexes hasrules hastriggers rowsecurity
pg_tablespace +oid oid +text spcname +oid spcowner +texts spcacl spcoptions
pg_timezone_names +text name abbrev utc_offset +bool is_dst
pg_trigger +oid oid tgrelid tgparentid +text tgname +oid tgfoid +int2 tgtype +text tgenabled +bool tgisinternal +oid tgconstrrelid tgconstrindid tgconstraint +bool tgdeferrable tginitdeferred +int2 tgnargs +int2s tgattr
pg_ts_config +oid oid +text cfgname +oid cfgnamespace cfgowner cfgparser
pg_ts_config_map +oid mapcfg +int4 maptokentype mapseqno +oid mapdict
pg_ts_dict +oid oid +text dictname +oid dictnamespace dictowner dicttemplate +text dictinitoption
pg_ts_parser +oid oid +text prsname +oid prsnamespace prsstart prstoken prsend prsheadline prslextype
pg_ts_template +oid oid +text tmplname +oid tmplnamespace tmplinit tmpllexize
pg_type +oid oid +text typname +oid typnamespace typowner +int2 typlen +bool typbyval +text typtype typcategory +bool typispreferred typisdefined +text typdelim +oid typrelid typsubscript typelem typarray typinput typoutput typreceive typsend +text typalign typstorage +bool typnotnull +oid typbasetype +int4 typtypmod typndims +oid typcollation +text typdefaultbin typdefault +texts typacl
pg_user +text usename +oid usesysid +bool usecreatedb usesuper userepl usebypassrls
pg_user_mapping +oid oid umuser umserver +texts umoptions
pg_user_mappings +oid umid srvid +text srvname +oid umuser +text usename +texts umoptions
pg_views +text schemaname viewname viewowner definition
"""  # noqa: E501 (a line a table)

_INFORMATION = """
character_sets +text character_set_name character_repertoire form_of_use
columns +text table_catalog table_schema table_name column_name +int4 ordinal_position +text column_default is_nullable data_type +int4 character_maximum_length character_octet_length numeric_precision numeric_precision_radix numeric_scale datetime_precision +text interval_type collation_name domain_schema domain_name udt_catalog udt_schema udt_name dtd_identifier is_self_referencing is_identity identity_generation is_generated generation_expression is_updatable
constraint_column_usage +text table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name
key_column_usage +text constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name +int4 ordinal_position position_in_unique_constraint
referential_constraints +text constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option update_rule delete_rule
routines +text specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name routine_type data_type
schemata +text catalog_name schema_name schema_owner default_character_set_name
sequences +text sequence_catalog sequence_schema sequence_name data_type
table_constraints +text constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type is_deferrable initially_deferred
tables +text table_catalog table_schema table_name table_type self_referencing_column_name reference_generation user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action
triggers +text trigger_catalog trigger_schema trigger_name event_manipulation event_object_schema event_object_table
views +text table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into
"""  # noqa: E501 (a line a table)

_OWN = """
help +text topic what example
"""


def _read(lines: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in lines.strip().splitlines():
        name, *rest = line.split()
        columns, kind = {}, "VARCHAR"
        for word in rest:
            if word.startswith("+"):
                kind = _TYPES[word]
            else:
                columns[word] = kind
        found[name] = columns
    return found


PG = _read(_PG)
INFORMATION = _read(_INFORMATION)
OWN = _read(_OWN)
"""The hub's own, in the schema `cloister`."""
HOMES = {"pg": PG, "info": INFORMATION, "own": OWN}


def create(schema: str, name: str) -> str:
    """The line that makes one of the tables.

    >>> create("pg", "pg_inherits")
    'CREATE TABLE pg.pg_inherits (inhrelid UINTEGER, inhparent UINTEGER, inhseqno INTEGER, inhdetachpending BOOLEAN)'
    """
    columns = HOMES[schema][name]
    return f"CREATE TABLE {schema}.{name} ({', '.join(f'{column} {kind}' for column, kind in columns.items())})"
