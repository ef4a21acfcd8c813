/** Statements that break the isolation of tenants. The first sentence says how; the proof must find each of them. */
export const mutants: Record<string, string> = {
  'lines have no policy': 'alter table tapetree.entry disable row level security',
  'the policy of blobs lets every row through': `
    drop policy one_tenant on tapetree.blob; create policy one_tenant on tapetree.blob using (true)`,
  'a session is found by its id alone': changed('find_session', { from: 's.tenant = a_tenant and ', asOwner: true }),
  'a tenant is compared as a beginning': changed('find_session', {
    from: 's.tenant = a_tenant',
    to: `s.tenant like a_tenant || '%'`,
    asOwner: true,
  }),
  'a tenant is compared without case': changed('find_session', {
    from: 's.tenant = a_tenant',
    to: 'lower(s.tenant) = lower(a_tenant)',
    asOwner: true,
  }),
  'a list has all tenants': changed('list_sessions', {
    from: 'm.tenant = $1 and m.place = $2',
    to: 'm.place = $2',
    asOwner: true,
  }),
  'the cursor of a list drops the tenant': changed('list_sessions', {
    from: '(m.modified, m.id) < ($7, $8)',
    to: '(m.modified, m.id) < ($7, $8) or (m.modified, m.id) < ($7, $8)',
    asOwner: true,
  }),
  'a search has all tenants': changed('search_texts', {
    from: 't.tenant = $1 and s.place = $2',
    to: 's.place = $2',
    asOwner: true,
  }),
  'a blob is found by its hash alone': changed('read_blob', { from: 'key = a_key and ', asOwner: true }),
  'lines are read by key alone': changed('read_lines', { asOwner: true }),
  'checkpoints are read by key alone': changed('read_derived', { asOwner: true }),
  'an append looks at the key alone': changed('append_lines', { from: 's.tenant = b.tenant and ' }),
  'a blob is stored by key alone': changed('put_blob', { from: 'tenant = a_tenant and ' }),
  'a claim looks at the id alone': changed('claim_session', { from: 's.tenant = a_tenant and ' }),
  'an erase looks at the id alone': changed('erase_session', { from: 'tenant = a_tenant and ' }),
  'a move looks at the id alone': changed('move_session', { from: 'tenant = a_tenant and ' }),
  'the tenant of a call stays set': changed('find_session', { from: 'a_tenant, true)', to: 'a_tenant, false)' }),
  'roles are not bound': changed('bound_tenant', { from: 'session_user', to: `''` }),
  'a bound role can be changed by SET ROLE': changed('bound_tenant', { from: 'session_user', to: 'current_user' }),
  'one function does not look whether the role is bound': changed('save_derived', {
    from: 'perform require_tenant(variadic tenants);',
  }),
  'the application may become the owner': 'grant tapetree_owner to tapetree_app',
  'a view of the owner has all lines': `
    create view tapetree.lines as select line from tapetree.entry; alter view tapetree.lines owner to tapetree_owner;
    grant select on tapetree.lines to tapetree_app`,
}

/** Replaces a part of a function, and lets the function run as the owner, to whom no policy applies. */
function changed(name: string, { from = '', to = '', asOwner = false }): string {
  const change = `
    do $change$
    declare
      old text := pg_get_functiondef('tapetree.${name}'::regproc);
    begin
      if position($part$${from}$part$ in old) = 0 then raise exception 'there is nothing to change in ${name}'; end if;
      execute replace(old, $part$${from}$part$, $part$${to}$part$);
    end $change$;`
  const owner = `
    do $owner$ begin
      execute format('alter function %s security definer', 'tapetree.${name}'::regproc::oid::regprocedure);
    end $owner$;`
  return (from === '' ? '' : change) + (asOwner ? owner : '')
}
