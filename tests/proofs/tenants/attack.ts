import { randomUUID } from 'node:crypto'
import type { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'
import { boundRole, openRole, type TenantName } from './databases.ts'
import { formsOf } from '../../../packages/redact/src/redaction-policy.ts'

interface Attack {
  database: string
  attacker: TenantName
  victim: TenantName
  /** Every text of the victim contains it. */
  canary: string
}

/** What an attacker might have learned about a session: all but its content. */
interface Target {
  tenant: string
  key: string
  id: string
  term: number
  head: number
  lines: number
  claim: string
  sha256: string
}

/**
 * Sends SQL as the application. Of all bytes that come back over the connection, none may be of the victim, and the rows of the victim
 * must be the same afterwards. The role that serves all tenants may name any tenant, so only the bound one tries that.
 */
export async function attackTenant(
  server: PostgresServer,
  { database, attacker, victim, canary }: Attack,
): Promise<{ problems: string[]; statements: number }> {
  const targets = await targetsOf(server, database, victim)
  const [target] = targets
  if (!target) return { problems: [], statements: 0 }
  const problems: string[] = []
  const before = await rowsOf(server, database, victim)
  const wrongTenant = targets.flatMap((each) => statementsFor({ ...each, tenant: attacker }))
  const plain = [...escapes(target), ...readings, ...wrongTenant]
  const setting = (tenant: string): string => `set tapetree.tenant = '${tenant}'`
  const named = [
    ...readings.map((statement) => `${setting(victim)}; ${statement}`),
    `select set_config('tapetree.tenant', '${victim}', false); select * from tapetree.entry`,
    `begin; set local tapetree.tenant = '${victim}'; select * from tapetree.entry; commit`,
    `select tapetree.create_session('${victim}', 'from-outside', '${randomUUID()}', '{}')`,
    ...targets.flatMap(statementsFor),
  ]
  const tries: [role: string, tenant: string, statements: readonly string[]][] = [
    [openRole, '', plain],
    [openRole, attacker, plain],
    [boundRole(attacker), attacker, [...plain, ...named]],
  ]
  let count = 0
  for (const [role, tenant, statements] of tries) {
    count += statements.length
    const prepared = tenant === '' ? '' : setting(tenant)
    for (const { statement, bytes } of await answersTo(server, { role, database, prepared, statements })) {
      if (hasCanary(bytes, canary)) problems.push(`${role} got bytes of ${victim}: ${statement.slice(0, 160)}`)
    }
  }
  // An attack that got through may have changed the schema, too.
  if (problems.length > 0) return { problems, statements: count }
  problems.push(...(await leftovers(server, { database, attacker, victim, canary }, target)))
  const after = await rowsOf(server, database, victim)
  if (after !== before) problems.push(`${attacker} changed rows of ${victim}`)
  // A search that finds nothing anywhere would prove nothing.
  const own = {
    role: boundRole(victim),
    database,
    prepared: setting(victim),
    statements: ['copy tapetree.entry to stdout'],
  }
  const [control] = await answersTo(server, own)
  if (!control || !hasCanary(control.bytes, canary)) problems.push(`${victim} does not see its own lines`)
  return { problems, statements: count }
}

/** A cheap function, which the planner would like to call before the policy. */
const leak = `create or replace function pg_temp.leak(t text) returns boolean language plpgsql cost 0.0000001
  as $f$ begin raise notice '%', t; return true; end $f$`

/** The first ones have what sessions contain. */
const tables = [
  'entry',
  'blob',
  'derived',
  'summary',
  'entry_text',
  'search_term',
  'session',
  'pending_row',
  'pending_text',
  'stored_size',
]
const readings = tables.flatMap((table, index) => waysToRead(table).slice(0, index < 6 ? Infinity : 3))

function hasCanary(bytes: Buffer, canary: string): boolean {
  return [...formsOf(canary), Buffer.from(canary).toString('hex')].some((form) => bytes.includes(form))
}

/** The longest session that someone writes, and the longest one with a checkpoint. They may be the same. */
async function targetsOf(server: PostgresServer, database: string, tenant: string): Promise<Target[]> {
  const longest = (order: string): string =>
    `(select s.tenant, s.key, s.id, s.term, s.head, s.lines, coalesce(s.claim::text, '') as claim, coalesce(b.sha256, '') as sha256
     from tapetree.session s left join tapetree.blob b on b.key = s.key
     where s.tenant = '${tenant}' and s.place = 'active' order by ${order}, s.lines desc, b.sha256 limit 1)`
  const hasCheckpoint = 'exists (select from tapetree.derived d where d.key = s.key)'
  const rows = await server.admin(
    `${longest('b.sha256 is null, s.claim is null')} union ${longest(`not ${hasCheckpoint}`)}`,
    database,
  )
  return (rows as unknown as Target[]).map((row) => ({ ...row, claim: row.claim || randomUUID() }))
}

async function rowsOf(server: PostgresServer, database: string, tenant: string): Promise<string> {
  const ofSession = `t.key in (select key from tapetree.session where tenant = '${tenant}')`
  const digests = tables.map((table) => {
    const ofTenant = `t.tenant = '${tenant}'${table === 'search_term' ? '' : ` or ${ofSession}`}`
    return `(select md5(string_agg(t::text, ',' order by t::text)) from tapetree.${table} t where ${ofTenant})`
  })
  const [row] = await server.admin(`select concat_ws(' ', ${digests.join(', ')}) as digest`, database)
  return String(row?.['digest'])
}

/** Every byte that the server sent for each statement: rows, copies, notices and errors. */
async function answersTo(
  server: PostgresServer,
  options: { role: string; database: string; prepared: string; statements: readonly string[] },
): Promise<{ statement: string; bytes: Buffer }[]> {
  const client = await server.connect(options.role, options.database)
  const { stream } = (client as unknown as { connection: { stream: NodeJS.ReadableStream } }).connection
  let chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const answers: { statement: string; bytes: Buffer }[] = []
  try {
    for (const statement of options.statements) {
      chunks = []
      await client.query(`${options.prepared}; ${statement}`).catch(() => undefined)
      answers.push({ statement, bytes: Buffer.concat(chunks) })
      if (statement.includes('begin; ')) await client.query('rollback')
      await client.query('discard all')
    }
  } finally {
    await client.end()
  }
  return answers
}

/** A connection that has served the victim is used for something else. */
async function leftovers(
  server: PostgresServer,
  { database, victim, canary }: Attack,
  { id, key }: Target,
): Promise<string[]> {
  const problems: string[] = []
  const calls = [
    `select tapetree.find_session('${victim}', '${id}')`,
    `select tapetree.count_lines('${victim}', array[${key}])`,
    `select tapetree.owner_of('${victim}', ${key})`,
  ]
  const client = await server.connect(openRole, database)
  try {
    for (const call of calls) {
      await client.query(call)
      const { rows } = await client.query('select * from tapetree.entry')
      if (rows.length > 0) problems.push(`after ${call.slice(0, 60)} the connection still sees ${canary.slice(0, 3)}…`)
      await client.query('discard all')
    }
  } finally {
    await client.end()
  }
  return problems
}

function waysToRead(table: string): string[] {
  const name = `tapetree.${table}`
  return [
    `select * from ${name}`,
    `copy ${name} to stdout`,
    `copy (select * from ${name}) to stdout (format binary)`,
    `set row_security = off; select * from ${name}`,
    `select query_to_xml('select * from ${name}', true, false, '')`,
    `explain (analyze, verbose) select * from ${name}`,
    `set role tapetree_owner; select * from ${name}`,
    `alter table ${name} disable row level security; select * from ${name}`,
    `alter table ${name} owner to current_user; select * from ${name}`,
    `drop policy one_tenant on ${name}; select * from ${name}`,
    `create policy mine on ${name} using (true); select * from ${name}`,
    `do $$ declare r record; begin for r in select * from ${name} loop raise notice '%', r; end loop; end $$`,
    `${leak}; select count(*) from ${name} t where pg_temp.leak(t::text)`,
    `select count(*) from ${name} t where t::text::int = 1`,
    `prepare p as select * from ${name}; execute p`,
    `begin; declare c cursor with hold for select * from ${name}; fetch all from c`,
    `create temp view v as select * from ${name}; select * from v`,
    `create temp table t as select * from ${name}; select * from t`,
    `lock table ${name}; select ctid, * from ${name} for update`,
    `update ${name} set tenant = tenant returning *`,
    `delete from ${name} returning *`,
  ]
}

/** Ways around the policies that do not name a tenant in a setting. */
function escapes({ tenant, sha256 }: Target): string[] {
  const roles = ['tapetree_owner', 'admin', 'postgres', 'pg_read_all_data', boundRole(tenant as TenantName)]
  return [
    ...roles.flatMap((role) => [
      `set role ${role}; set tapetree.tenant = '${tenant}'; select * from tapetree.entry`,
      `set session authorization ${role}; set tapetree.tenant = '${tenant}'; select * from tapetree.entry`,
      `grant ${role} to current_user; set role ${role}; select * from tapetree.entry`,
    ]),
    `alter role current_user bypassrls; select * from tapetree.entry`,
    `insert into tapetree.bound_role values ('app', '${tenant}')`,
    `update tapetree.bound_role set tenant = '${tenant}'`,
    `delete from tapetree.bound_role`,
    `select * from tapetree.bound_role`,
    // Everything that the role may read, by whatever name.
    `do $$ declare r record; x text; begin
      for r in select c.oid::regclass as name from pg_class c where relkind in ('r', 'v', 'm', 'p', 'f') and relnamespace = 'tapetree'::regnamespace
        and has_table_privilege(c.oid, 'select') loop
        for x in execute format('select t::text from %s t', r.name) loop raise notice '%', x; end loop;
      end loop; end $$`,
    `select schema_to_xml('tapetree', true, false, '')`,
    `select * from pg_stats where schemaname = 'tapetree'`,
    `select * from pg_catalog.pg_statistic`,
    `select * from pg_stat_activity`,
    `select * from pg_prepared_statements`,
    `select * from pg_stats_ext`,
    `select * from tapetree.search_term`,
    `select * from ts_stat('select terms from tapetree.entry_text')`,
    `select pg_read_binary_file(pg_relation_filepath('tapetree.entry'))`,
    `select pg_read_file('postgresql.conf')`,
    `copy tapetree.entry to program 'cat'`,
    `select lo_import('/etc/hostname')`,
    `select get_raw_page('tapetree.entry', 0)`,
    `create function tapetree.mine() returns setof tapetree.entry language sql security definer as 'select * from tapetree.entry'`,
    `create or replace function tapetree.bound_tenant() returns text language sql as $$ select null::text $$`,
    `create function pg_temp.current_setting(text, boolean) returns text language sql as $$ select '${tenant}'::text $$;
      set search_path = pg_temp, tapetree; select * from tapetree.entry`,
    `create function pg_temp.bound_tenant() returns text language sql as $$ select '${tenant}'::text $$;
      set search_path = pg_temp, tapetree; select * from tapetree.entry`,
    `create temp table bound_role (role name, tenant text); insert into bound_role values (session_user, '${tenant}');
      set search_path = pg_temp, tapetree; select * from tapetree.entry`,
    `select bytes from tapetree.blob where sha256 = '${sha256}'`,
  ]
}

/** All functions, for the session of another tenant: by the name of that tenant, or by one of the attacker's own. */
function statementsFor({ tenant, key, id, term, head, lines, claim, sha256 }: Target): string[] {
  const uuid = randomUUID()
  const line = `{"seq":${head + 1},"type":"custom"}`
  return [
    `append_lines(array['${tenant}'], array[${key}], array[${term}], array[${head}], array[1], array[1], array[1], '${line}')`,
    `reclaim_session('${tenant}', ${key}, '${uuid}', '${claim}', '${uuid}')`,
    `release_session('${tenant}', ${key}, '${claim}')`,
    `hand_over_session('${tenant}', ${key}, '${claim}')`,
    `unheld_sessions('${tenant}', '${uuid}', '{}')`,
    `read_document('${tenant}', 'tokens')`,
    `write_document('${tenant}', 'tokens', 1, '${uuid}', '${uuid}')`,
    `owner_of('${tenant}', ${key})`,
    `put_blob('${tenant}', ${key}, ${term}, '${'0'.repeat(64)}', '${uuid}')`,
    `save_derived(array['${tenant}'], array[${key}], array[${term}], array[1], array[1], array[0], '${uuid}')`,
    `save_rows(array['${tenant}'], array[${key}], array[${lines}], array['9'], array['idle'], array[null::text], array[''], array['{}'])`,
    `save_row('${tenant}', ${key}, ${lines}, '9', 'idle', null, '', '{}')`,
    `save_texts('${tenant}', ${key}, 0, ${lines}, '[]')`,
    `read_lines('${tenant}', ${key}, 1, 1000, 1000000)`,
    `read_numbered('${tenant}', ${key}, array[1, 2, 3])`,
    `count_lines('${tenant}', array[${key}])`,
    `read_derived('${tenant}', ${key}, false)`,
    `read_blob('${tenant}', ${key}, '${sha256}')`,
    `stale_sessions('${tenant}', 'row')`,
    `list_folders('${tenant}', 'active')`,
    `stored_bytes('${tenant}', null, false)`,
    `list_sessions('${tenant}', 'active', null, null, '%'' or true or ''1'' like ''', null, false, null, null, null)`,
    `list_sessions('${tenant}', 'active', null, null, '%', null, false, null, null, null)`,
    `list_sessions(null, 'active', null, null, null, null, false, null, null, null)`,
    `search_texts('${tenant}', 'active', array['%'], null, null, null, null, null, null, null, null, 100, '{}')`,
    `search_texts('${tenant}', 'active', array['%'], null, null, null, null, null, null, null, null, 100, array['%', '%'' or true --'])`,
    `search_texts('${tenant}', 'active', array['%'' or true --'], null, null, null, null, null, null, null, null, 100, '{}')`,
    `search_texts('${tenant}', 'active', array['%'], '!''x''', array['${id}'], null, null, null, null, null, null, 100, '{}')`,
  ].map((call) => `select * from tapetree.${call}`)
}
