/** A line, and the term of the writer that appended it. */
interface EntryRow {
  line: string
  term: number
}

export interface SessionRow {
  key: string
  tenant: string
  id: string
  creation: unknown
  place: string
  term: number
  head: number
  entries: EntryRow[]
  node: string | null
  claim: string | null
  isRowStale: boolean
  isTextStale: boolean
  readonly blobs: Map<string, Uint8Array>
  derived: Map<number, string>
  summary: Summary
  texts: EntryText[]
}

interface Summary {
  rowLines: number
  textLines: number
  modified: string
  status: string
  cwd: string | null
  haystack: string
  info: string
}

interface EntryText {
  n: number
  seq: number
  ms: number
  role: string
  folded: string
  terms: string[]
}

export interface NodeRow {
  address: string | null
  host: string
  process: string
  leaseUntil: number
}

/** Rules that a fault can switch off. */
export interface DatabaseRules {
  comparesTerms: boolean
  comparesHeads: boolean
  /** A lease ends when its time is over. */
  leasesEnd: boolean
  /** The sessions of a living node are left to it. */
  heedsLeases: boolean
  raisesTerms: boolean
  /** Only the current claim of a session can be renewed or released. */
  comparesClaims: boolean
}

interface AppendSeen {
  session: SessionRow
  /** Whoever sent the statement. */
  from: unknown
  term: number
  entries: readonly EntryRow[]
}

export interface ModelledDatabaseOptions {
  /** The clock of the database, in milliseconds. */
  now: () => number
  onAppend?: (seen: AppendSeen) => void
}

type Values = readonly unknown[]
type Row = Record<string, unknown>
type Statement = (values: Values, from: unknown) => Row[]

/**
 * The tables of the PostgreSQL store and the functions of its schema, each of which takes no time and is never interrupted. The store
 * itself is ours: what it sends and what it makes of the answers is not modelled.
 */
export class ModelledDatabase {
  readonly rules: DatabaseRules = {
    comparesTerms: true,
    comparesHeads: true,
    leasesEnd: true,
    heedsLeases: true,
    raisesTerms: true,
    comparesClaims: true,
  }
  readonly nodes = new Map<string, NodeRow>()
  readonly #byId = new Map<string, SessionRow>()
  readonly #byKey = new Map<string, SessionRow>()
  readonly #owned = new Map<string, Set<SessionRow>>()
  readonly #options: ModelledDatabaseOptions
  readonly #statements = new Map<string, Statement>()
  #keys = 0
  /** No node that owns a session has a lease that ends before this. It may be too early, and never too late. */
  #firstEnd = -Infinity

  constructor(options: ModelledDatabaseOptions) {
    this.#options = options
  }

  /** The rows that a statement returns. `from` is only handed on to `onAppend`. */
  run(text: string, values: Values, from?: unknown): Row[] {
    let statement = this.#statements.get(text)
    if (!statement) {
      statement = this.#statementOf(text)
      this.#statements.set(text, statement)
    }
    return statement(values, from)
  }

  find(tenant: string, id: string): SessionRow | undefined {
    return this.#byId.get(`${tenant}/${id}`)
  }

  get sessions(): Iterable<SessionRow> {
    return this.#byKey.values()
  }

  isLiving(node: string): boolean {
    const lease = this.nodes.get(node)?.leaseUntil
    return lease !== undefined && (lease > this.#options.now() || !this.rules.leasesEnd)
  }

  #statementOf(text: string): Statement {
    if (text.includes('to_regclass')) return () => [{ name: 'tapetree.version' }]
    if (text === 'select number from tapetree.version') return () => [{ number: 1 }]
    const [first = '', second] = [...text.matchAll(/tapetree\.(\w+)\(/g)].map(([, name = '']) => name)
    if (first === 'save_derived' && second === 'save_rows') {
      return (values) => {
        const stored = this.#saveDerived(values.slice(0, 7))
        this.#saveRows(values.slice(7))
        return [{ stored }]
      }
    }
    const known = this.#functions()[first]
    if (!known) throw new Error(`The modelled database does not know: ${text}`)
    // A function that returns no table has one value, under the name that the statement gives it.
    const name = / as "?(\w+)"?$/.exec(text)?.[1]
    const kind = text.includes("'row'") ? 'row' : 'text'
    return (values, from) => {
      const result = known([...values, kind], from)
      return Array.isArray(result) ? (result as Row[]) : [{ [name ?? first]: result }]
    }
  }

  #functions(): Record<string, (values: Values, from: unknown) => unknown> {
    return {
      create_session: (values) => this.#create(values),
      append_lines: (values, from) => this.#append(values, from),
      beat: (values) => this.#beat(values),
      end_node: ([node]) => this.#endNode(String(node)),
      claim_session: (values) => this.#claim(values),
      abandoned_sessions: (values) => this.#abandoned(values),
      claim_abandoned: (values) => this.#claimAbandoned(values),
      reclaim_session: (values) => this.#reclaim(values),
      release_session: (values) => this.#release(values),
      hand_over_session: (values) => this.#handOver(values),
      unheld_sessions: ([tenant, node, claims]) =>
        [...(this.#owned.get(String(node)) ?? [])]
          .filter((session) => session.tenant === tenant && !(claims as unknown[]).includes(session.claim))
          .map(({ key, claim }) => ({ key, claim })),
      owner_of: ([tenant, key]) => this.#ownerOf(this.#at(tenant, key)),
      put_blob: (values) => this.#putBlob(values),
      save_row: (values) => this.#saveRow(values),
      save_texts: (values) => this.#saveTexts(values),
      move_session: (values) => this.#move(values),
      erase_session: (values) => this.#erase(values),
      find_session: ([tenant, id]) => {
        const found = this.find(String(tenant), String(id))
        return found ? [{ key: found.key, place: found.place, head: found.head, lines: found.entries.length }] : []
      },
      read_lines: (values) => this.#readLines(values),
      read_numbered: ([tenant, key, numbers]) => {
        const entries = this.#at(tenant, key)?.entries ?? []
        return (numbers as number[]).flatMap((n) => (entries[n - 1] ? [{ n, line: entries[n - 1]?.line }] : []))
      },
      count_lines: ([tenant, keys]) =>
        (keys as string[]).flatMap((key) => {
          const session = this.#at(tenant, key)
          return session ? [{ key, lines: session.entries.length }] : []
        }),
      read_derived: ([tenant, key, isBrief]) =>
        [...(this.#at(tenant, key)?.derived ?? [])]
          .filter(([piece]) => piece === 0 || isBrief !== true)
          .sort(([left], [right]) => left - right)
          .map(([piece, content]) => ({ piece, content })),
      read_blob: ([tenant, key, sha256]) => {
        const bytes = this.#at(tenant, key)?.blobs.get(String(sha256))
        return bytes ? Buffer.from(bytes) : null
      },
      stale_sessions: (values) => this.#stale(values),
      list_folders: ([tenant, place]) => {
        const folders = new Set(this.#in(tenant, place).map(({ summary }) => summary.cwd))
        return [...folders].map((cwd) => ({ cwd }))
      },
      stored_bytes: ([tenant, folders, hasNone]) => {
        let bytes = 0
        for (const session of this.#byKey.values()) {
          const { cwd } = session.summary
          const isVisible = cwd === null ? hasNone : (folders as string[] | null)?.includes(cwd)
          if (session.tenant !== tenant || (folders !== null && !isVisible)) continue
          for (const { line } of session.entries) bytes += Buffer.byteLength(line) + 1
          for (const blob of session.blobs.values()) bytes += blob.length
        }
        return String(bytes)
      },
      list_sessions: (values) => this.#list(values),
      search_texts: (values) => this.#search(values),
    }
  }

  #at(tenant: unknown, key: unknown): SessionRow | undefined {
    const session = this.#byKey.get(String(key))
    return session?.tenant === tenant ? session : undefined
  }

  #in(tenant: unknown, place: unknown): SessionRow[] {
    return [...this.#byKey.values()].filter((session) => session.tenant === tenant && session.place === place)
  }

  #create([tenant, id, creation, header]: Values): boolean {
    const known = this.find(String(tenant), String(id))
    if (known) return known.creation === creation
    const session: SessionRow = {
      key: String(++this.#keys),
      tenant: String(tenant),
      id: String(id),
      creation,
      place: 'active',
      term: 0,
      head: 1,
      entries: [{ line: String(header), term: 0 }],
      node: null,
      claim: null,
      isRowStale: true,
      isTextStale: true,
      blobs: new Map(),
      derived: new Map(),
      summary: { rowLines: 0, textLines: 0, modified: '', status: 'idle', cwd: null, haystack: '', info: '' },
      texts: [],
    }
    this.#byKey.set(session.key, session)
    this.#byId.set(`${session.tenant}/${session.id}`, session)
    return true
  }

  #append(values: Values, from: unknown): Row[] {
    const [tenants, keys, terms, heads, counts] = values.slice(0, 5).map((each) => elementsOf(String(each)))
    const texts = String(values[7]).split('\n')
    const rows: Row[] = []
    let next = 0
    for (const [index, key] of (keys ?? []).entries()) {
      const lines = texts.slice(next, next + Number(counts?.[index]))
      next += lines.length
      const session = this.#at(tenants?.[index], key)
      const term = Number(terms?.[index])
      if (!session || (session.term !== term && this.rules.comparesTerms)) continue
      if (session.head !== Number(heads?.[index]) && this.rules.comparesHeads) continue
      rows.push({ place: index + 1, first: session.entries.length + 1 })
      const entries = lines.map((line): EntryRow => ({ line, term }))
      session.entries.push(...entries)
      session.head += entries.length
      session.isRowStale = true
      session.isTextStale = true
      this.#options.onAppend?.({ session, from, term, entries })
    }
    return rows
  }

  #beat([node, address, host, process, leaseMs, keys, claims]: Values): Row[] {
    const leaseUntil = this.#options.now() + Number(leaseMs)
    const known = this.nodes.get(String(node))
    if (known) {
      known.leaseUntil = leaseUntil
      known.address = (address as string | null) ?? known.address
    } else {
      this.nodes.set(String(node), {
        address: address as string | null,
        host: String(host),
        process: String(process),
        leaseUntil,
      })
    }
    return (keys as string[]).flatMap((key, index) => {
      const claim = (claims as string[])[index]
      return this.#byKey.get(key)?.claim === claim ? [] : [{ key, claim }]
    })
  }

  #endNode(node: string): void {
    this.nodes.delete(node)
    this.#firstEnd = -Infinity
    const dayAgo = this.#options.now() - 24 * 60 * 60_000
    for (const [id, { leaseUntil }] of this.nodes) if (leaseUntil < dayAgo) this.nodes.delete(id)
  }

  #claim([tenant, id, node, claim, isForced]: Values): Row[] {
    const session = this.find(String(tenant), String(id))
    if (session?.place !== 'active') return [{ outcome: 'missing' }]
    const isOwned = session.node !== null && this.isLiving(session.node) && this.rules.heedsLeases
    if (session.claim !== claim && isOwned && isForced !== true) {
      return [{ outcome: 'owned', key: session.key, owner: this.#ownerOf(session) }]
    }
    if (session.claim !== claim) this.#give(session, String(node), String(claim))
    return [{ outcome: 'claimed', ...placeOf(session) }]
  }

  #give(session: SessionRow, node: string | null, claim: string | null): void {
    if (node !== null && this.rules.raisesTerms) session.term++
    this.#setOwner(session, node, claim)
  }

  #setOwner(session: SessionRow, node: string | null, claim: string | null): void {
    this.#owned.get(session.node ?? '')?.delete(session)
    session.node = node
    session.claim = claim
    if (node === null) return
    const owned = this.#owned.get(node) ?? new Set()
    this.#owned.set(node, owned.add(session))
    this.#firstEnd = Math.min(this.#firstEnd, this.nodes.get(node)?.leaseUntil ?? -Infinity)
  }

  #abandoned([tenant, node]: Values): Row[] {
    if (this.rules.heedsLeases && this.#options.now() < this.#firstEnd) return []
    const rows: Row[] = []
    this.#firstEnd = Infinity
    for (const [owner, sessions] of this.#owned) {
      if (sessions.size === 0) {
        this.#owned.delete(owner)
        continue
      }
      this.#firstEnd = Math.min(this.#firstEnd, this.nodes.get(owner)?.leaseUntil ?? -Infinity)
      if (owner === node || (this.isLiving(owner) && this.rules.heedsLeases)) continue
      for (const session of sessions) {
        if (session.tenant !== tenant || session.place !== 'active') continue
        rows.push({ key: session.key, header: session.entries[0]?.line })
      }
    }
    return rows
  }

  #claimAbandoned([tenant, node, claim, keys]: Values): Row[] {
    const wanted = (keys as string[]).flatMap((key) => this.#at(tenant, key) ?? [])
    for (const session of wanted) {
      if (session.place !== 'active' || session.node === null || session.node === node) continue
      if (this.isLiving(session.node) && this.rules.heedsLeases) continue
      this.#give(session, String(node), String(claim))
    }
    return wanted
      .filter((session) => session.node === node && session.claim === claim)
      .map((session) => ({ id: session.id, ...placeOf(session) }))
  }

  #reclaim([tenant, key, node, oldClaim, newClaim]: Values): number | null {
    const session = this.#at(tenant, key)
    if (!session) return null
    if (session.claim === newClaim) return session.term
    if (session.claim !== oldClaim && this.rules.comparesClaims) return null
    this.#give(session, String(node), String(newClaim))
    return session.term
  }

  #release([tenant, key, claim]: Values): void {
    const session = this.#at(tenant, key)
    if (session && (session.claim === claim || !this.rules.comparesClaims)) this.#give(session, null, null)
  }

  #handOver([tenant, key, claim]: Values): void {
    const session = this.#at(tenant, key)
    if (session && session.claim === claim) this.#setOwner(session, nobody, session.claim)
  }

  #ownerOf(session: SessionRow | undefined): string | null {
    const node = session && session.node !== null && this.isLiving(session.node) && this.nodes.get(session.node)
    return node ? JSON.stringify({ host: node.host, process: node.process, address: node.address }) : null
  }

  #putBlob([tenant, key, term, sha256, bytes]: Values): boolean {
    const session = this.#at(tenant, key)
    if (!session || session.term !== term) return false
    if (!session.blobs.has(String(sha256))) session.blobs.set(String(sha256), new Uint8Array(bytes as Uint8Array))
    return true
  }

  #saveDerived([tenants, keys, terms, counts, owners, pieces, body]: Values): number[] | null {
    const contents = String(body).split('\u{1e}')
    const places: number[] = []
    for (const [index, key] of (keys as string[]).entries()) {
      const session = this.#at((tenants as string[])[index], key)
      if (!session || session.term !== (terms as (number | null)[])[index]) continue
      places.push(index + 1)
      for (const [at, owner] of (owners as number[]).entries()) {
        if (owner === index + 1) session.derived.set((pieces as number[])[at] ?? 0, contents[at] ?? '')
      }
      const count = (counts as number[])[index] ?? 0
      for (const piece of session.derived.keys()) if (piece >= count) session.derived.delete(piece)
    }
    return places.length > 0 ? places : null
  }

  #saveRows(columns: Values): void {
    for (const index of (columns[0] as unknown[]).keys()) {
      const row = columns.map((column) => (column as unknown[])[index])
      if (this.#at(row[0], row[1])?.entries.length === row[2]) this.#saveRow(row)
    }
  }

  #saveRow([tenant, key, lines, modified, status, cwd, haystack, info]: Values): void {
    const session = this.#at(tenant, key)
    if (!session || session.entries.length < Number(lines)) return
    if (session.summary.rowLines < Number(lines)) {
      const { textLines } = session.summary
      session.summary = {
        rowLines: Number(lines),
        textLines,
        modified: String(modified),
        status: String(status),
        cwd: cwd as string | null,
        haystack: String(haystack),
        info: String(info),
      }
    }
    if (session.entries.length === lines) session.isRowStale = false
  }

  #saveTexts([tenant, key, from, through, texts]: Values): void {
    const session = this.#at(tenant, key)
    if (!session || session.entries.length < Number(through) || session.summary.textLines !== from) return
    session.summary.textLines = Number(through)
    session.texts.push(...(JSON.parse(String(texts)) as EntryText[]))
    if (session.entries.length === through) session.isTextStale = false
  }

  #move([tenant, id, place]: Values): string {
    const session = this.find(String(tenant), String(id))
    if (!session) return 'missing'
    if (session.place === place) return 'moved'
    if (session.node !== null && this.isLiving(session.node)) return 'owned'
    this.#give(session, null, null)
    session.term++
    session.place = String(place)
    return 'moved'
  }

  #erase([tenant, id]: Values): string {
    const session = this.find(String(tenant), String(id))
    if (!session) return 'missing'
    if (session.node !== null && this.isLiving(session.node)) return 'owned'
    this.#give(session, null, null)
    this.#byKey.delete(session.key)
    this.#byId.delete(`${session.tenant}/${session.id}`)
    return 'erased'
  }

  #readLines([tenant, key, from, maxRows, maxBytes]: Values): Row[] {
    const entries = this.#at(tenant, key)?.entries ?? []
    const rows: Row[] = []
    let bytes = 0
    for (let n = Math.max(1, Number(from)); n <= entries.length && rows.length < Number(maxRows); n++) {
      const line = entries[n - 1]?.line ?? ''
      rows.push({ n, line })
      bytes += Buffer.byteLength(line)
      if (bytes >= Number(maxBytes)) break
    }
    return rows
  }

  #stale([tenant, kind]: Values): Row[] {
    return [...this.#byKey.values()]
      .filter((session) => session.tenant === tenant && (kind === 'row' ? session.isRowStale : session.isTextStale))
      .map(({ key, id, entries, head, summary: { textLines } }) => ({
        key,
        id,
        tenant,
        lines: entries.length,
        head,
        textLines,
      }))
  }

  #list([tenant, place, cwd, status, pattern, folders, hasNone, lastModified, lastId, maxRows]: Values): Row[] {
    const isBefore = ({ summary, id }: SessionRow): boolean =>
      compare([summary.modified, id], [lastModified as string, lastId as string]) < 0
    return this.#in(tenant, place)
      .filter(
        (session) =>
          (cwd === null || session.summary.cwd === cwd) &&
          (status === null || session.summary.status === status) &&
          (pattern === null || session.summary.haystack.includes(plainOf(pattern as string))) &&
          (folders === null || isAmong(session.summary.cwd, folders as string[], hasNone === true)) &&
          (lastId === null || isBefore(session)),
      )
      .sort((left, right) => compare([right.summary.modified, right.id], [left.summary.modified, left.id]))
      .slice(0, maxRows === null ? Infinity : Number(maxRows))
      .map(({ summary: { info } }) => ({ info }))
  }

  #search(values: Values): Row[] {
    const [tenant, place, patterns, terms, ids, roles, sinceMs, untilMs, afterMs, afterId, afterSeq, maxRows] = values
    const parts = (patterns as string[]).map(plainOf)
    const wanted = terms === null ? [] : termsOf(terms as string)
    const isFound = ({ id }: SessionRow, { folded, terms: own, role, ms, seq }: EntryText): boolean =>
      parts.every((part) => folded.includes(part)) &&
      wanted.every(({ term, isPrefix }) => own.some((each) => (isPrefix ? each.startsWith(term) : each === term))) &&
      (ids === null || (ids as string[]).includes(id)) &&
      (roles === null || (roles as string[]).includes(role)) &&
      (sinceMs === null || ms >= Number(sinceMs)) &&
      (untilMs === null || ms < Number(untilMs)) &&
      (afterId === null || compare([ms, id, seq], [Number(afterMs), afterId as string, Number(afterSeq)]) < 0)
    return this.#in(tenant, place)
      .flatMap((session) => session.texts.filter((text) => isFound(session, text)).map((text) => ({ session, text })))
      .sort((left, right) =>
        compare([right.text.ms, right.session.id, right.text.seq], [left.text.ms, left.session.id, left.text.seq]),
      )
      .slice(0, Number(maxRows))
      .map(({ session: { id, entries }, text: { seq, role, n } }) => ({ id, seq, role, line: entries[n - 1]?.line }))
  }
}

/** Owns the sessions that a node has handed over. No node has this id. */
const nobody = '00000000-0000-0000-0000-000000000000'

function placeOf({ key, term, head, entries }: SessionRow): Row {
  return { key, term, head, lines: entries.length }
}

function isAmong(cwd: string | null, folders: readonly string[], hasNone: boolean): boolean {
  return cwd === null ? hasNone : folders.includes(cwd)
}

/** The elements of an array as PostgreSQL writes it, of numbers or of quoted texts. */
function elementsOf(array: string): string[] {
  const inner = array.slice(1, -1)
  if (inner === '') return []
  if (!inner.startsWith('"')) return inner.split(',')
  return [...inner.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
}

/** The text between the two `%` of a pattern for `LIKE`. */
function plainOf(pattern: string): string {
  return pattern.slice(1, -1).replaceAll(/\\(.)/gs, '$1')
}

function termsOf(query: string): { term: string; isPrefix: boolean }[] {
  return [...query.matchAll(/'((?:''|\\\\|[^'\\])*)'(:\*)?/g)].map(([, term = '', isPrefix]) => ({
    term: term.replaceAll(/''|\\\\/g, (pair) => pair.charAt(0)),
    isPrefix: isPrefix !== undefined,
  }))
}

function compare(left: readonly (string | number)[], right: readonly (string | number)[]): number {
  for (const [index, each] of left.entries()) {
    const other = right[index] as string | number
    if (each !== other) return each < other ? -1 : 1
  }
  return 0
}
