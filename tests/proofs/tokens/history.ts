import { AgentSession, allowAll, onlyModel } from '@tapetree/agent'
import { FakeClock, scriptedModel } from '@tapetree/agent/testing'
import { roles, type Limits } from '@tapetree/client/protocol'
import { AgentDriver, LiveSessions, startServer, TokenStore } from '@tapetree/server'
import { memoryStore } from '@tapetree/session'
import { randomFrom } from '@tapetree/session/testing'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Answer as WholeAnswer } from '../../../packages/server/src/testing/running-server.ts'
import { echo, isSettled, openers, type Opened, type Place } from './connections.ts'
import {
  depthOf,
  derivesFrom,
  granted,
  isValid,
  isWider,
  mayView,
  type KnownToken,
  type Rights,
  type Wanted,
} from './model.ts'

export interface HistoryResult {
  problems: string[]
  figures: Record<string, number>
}

export interface HistoryOptions {
  seed: number
  /** Empty. */
  folder: string
  say?: (line: string) => void
}

type Answer = Omit<WholeAnswer, 'headers'>

const minuteMs = 60_000
const steps = 10
/** Folders of sessions and tokens, from the widest to the narrowest. */
const folders = ['a', 'a/b', 'c'] as const
const maxDepth = 8

/** One random history of several servers over one token file, compared with a model after every step. */
export async function playHistory({ seed, folder, say }: HistoryOptions): Promise<HistoryResult> {
  const world = new World({ seed, folder, ...(say && { say }) })
  await world.open()
  try {
    for (let step = 0; step < steps && world.problems.length === 0; step++) await world.step()
    await world.checkEverything()
    return { problems: world.problems, figures: world.figures }
  } finally {
    await world.close()
  }
}

interface PendingCode {
  code: string
  place: Place
  generation: number
  by: KnownToken
  wanted: Wanted
  until: number
}

interface OpenConnection extends Opened {
  what: keyof typeof openers
  token: KnownToken
  place: Place
  generation: number
  isClosed: boolean
}

class World {
  readonly problems: string[] = []
  readonly figures: Record<string, number> = {
    steps: 0,
    requests: 0,
    created: 0,
    refused: 0,
    revoked: 0,
    connections: 0,
  }
  readonly #random: () => number
  readonly #folder: string
  readonly #say: ((line: string) => void) | undefined
  readonly #clock = new FakeClock()
  readonly #places: Place[] = []
  readonly #known: KnownToken[] = []
  readonly #codes: PendingCode[] = []
  #connections: OpenConnection[] = []
  /** As `tapetree tokens` does it: the file without a server. */
  #file!: TokenStore

  constructor({ seed, folder, say }: HistoryOptions) {
    this.#random = randomFrom(seed)
    this.#folder = folder
    this.#say = say
  }

  async open(): Promise<void> {
    for (const each of folders) await mkdir(join(this.#folder, each), { recursive: true })
    this.#file = await this.#openTokens()
    for (let count = 0; count < 2; count++) this.#places.push(await this.#start(0))
    await this.#ownerCreates({ role: 'drive' })
  }

  async close(): Promise<void> {
    for (const { end } of this.#connections) end()
    await Promise.all(this.#places.map(({ server }) => server.close()))
  }

  async step(): Promise<void> {
    this.#count('steps')
    const work = this.#pick([
      () => this.#create(),
      () => this.#create(),
      () => this.#create(),
      () => this.#beginPairing(),
      () => this.#pair(),
      () => this.#revoke(),
      () => this.#revoke(),
      () => this.#ownerCreates(this.#someRights()),
      () => this.#ownerRevokes(),
      () => this.#letTimePass(),
      () => this.#letTimePass(),
      () => this.#connect(),
      () => this.#connect(),
      () => this.#connect(),
      () => this.#restart(),
      () => this.#race(),
    ])
    await work()
    await this.#check(this.#sample(2), [this.#pick(this.#places)])
  }

  async checkEverything(): Promise<void> {
    await this.#check(this.#known, this.#places)
  }

  async #openTokens(): Promise<TokenStore> {
    return TokenStore.open({ file: join(this.#folder, 'tokens.json'), clock: this.#clock, first: null })
  }

  async #start(generation: number): Promise<Place> {
    const store = memoryStore()
    const model = scriptedModel([])
    const live = new LiveSessions({
      store,
      clock: this.#clock,
      openDriver: async (sessionId) =>
        new AgentDriver({
          agent: await AgentSession.open({
            store,
            sessionId,
            models: onlyModel(model),
            tools: () => [],
            gate: () => allowAll,
            hasSubagents: false,
            cwd: '/',
          }),
        }),
      create: async ({ model: _model, agent: _agent, ...header }) => {
        await using session = await store.create(header)
        return session.id
      },
    })
    const tokens = await this.#openTokens()
    const sessions = new Map<string, string>()
    for (const each of folders) sessions.set(each, await live.create({ cwd: join(this.#folder, each) }))
    const server = await startServer({
      tenants: new Map([['default', live]]),
      tokens,
      clock: this.#clock,
      api: { roots: () => [this.#folder] },
      editors: echo,
      // The proof tries more wrong tokens than a guesser may.
      failures: { max: Infinity },
    })
    return { server, tokens, sessions, generation }
  }

  /** A token asks a server for another one, which may be wider. */
  async #create(): Promise<void> {
    const by = this.#pickCreator()
    const wanted = this.#someRights()
    const place = this.#pick(this.#places)
    this.#tell(`${by.id} (${by.role}) asks for ${JSON.stringify(wanted)}`)
    const expected = this.#expectedGrant(by, wanted)
    const answer = await this.#ask(place, '/api/tokens', by.token, bodyOf(wanted))
    this.#judgeCreated(answer, { by, expected, wanted })
  }

  async #beginPairing(): Promise<void> {
    const by = this.#pickCreator()
    const wanted = this.#someRights()
    const place = this.#pick(this.#places)
    this.#tell(`${by.id} (${by.role}) begins a pairing for ${JSON.stringify(wanted)}`)
    const expected = this.#expectedGrant(by, wanted)
    const answer = await this.#ask(place, '/api/pairing', by.token, bodyOf(wanted))
    if (expected === undefined) {
      if (answer.status < 400) this.#complain(`a pairing for ${JSON.stringify(wanted)} began: ${answer.status}`)
      return
    }
    if (answer.status !== 201) return this.#complain(`a pairing was answered with ${answer.status} ${answer.text}`)
    const { code } = answer.body as { code: string }
    const until = this.#clock.now() + 5 * minuteMs
    this.#codes.push({ code, place, generation: place.generation, by, wanted, until })
  }

  async #pair(): Promise<void> {
    const pending = this.#codes.splice(Math.floor(this.#random() * this.#codes.length), 1)[0]
    if (!pending) return this.#beginPairing()
    const { code, place, generation, by, wanted, until } = pending
    const isOpen = generation === place.generation && until > this.#clock.now()
    const expected = isOpen ? this.#expectedGrant(by, wanted) : undefined
    this.#tell(`a device uses a code of ${by.id}`)
    const role = this.#random() < 0.3 ? this.#pick(roles) : undefined
    const narrowed = expected && (role === undefined ? expected : granted(expected, { role }))
    const answer = await this.#ask(place, '/api/pair', undefined, { code, as: 'token', ...(role && { role }) })
    this.#judgeCreated(answer, { by, expected: narrowed, wanted: { ...wanted, ...(role && { role }) } })
  }

  async #ownerCreates(wanted: Wanted): Promise<void> {
    this.#tell(`the owner creates ${JSON.stringify(wanted)}`)
    const { token, record } = await this.#file.create({ tenant: 'default', ...wanted })
    this.#know({ ...rightsOf(wanted), id: record.id, token, parent: undefined, isRevoked: false })
  }

  async #revoke(): Promise<void> {
    const [by, target] = [this.#pickCreator(), this.#pick(this.#known)]
    const now = this.#clock.now()
    this.#tell(`${by.id} (${by.role}) revokes ${target.id}`)
    const isIn = !isGone(target)
    const manages = by.folder === undefined || (isValid(target, now) && derivesFrom(target, by))
    const status = !isValid(by, now) ? 401 : by.role !== 'drive' ? 403 : isIn && manages ? 204 : 404
    const path = `/api/tokens/${target.id}`
    const answer = await this.#ask(this.#pick(this.#places), path, by.token, undefined, 'DELETE')
    if (answer.status !== status) this.#complain(`a revocation was answered with ${answer.status}, not ${status}`)
    if (answer.status === 204) this.#markRevoked(target)
    if (derivesFrom(by, target)) await this.#ownerCreates({ role: 'drive' })
  }

  async #ownerRevokes(): Promise<void> {
    const target = this.#pick(this.#known)
    this.#tell(`the owner revokes ${target.id}`)
    await this.#file.revoke(target.id, 'default')
    this.#markRevoked(target)
    await this.#ownerCreates({ role: 'drive' })
  }

  async #letTimePass(): Promise<void> {
    const ms = this.#pick([1000, minuteMs, 6 * minuteMs, 20 * minuteMs])
    this.#tell(`${ms} ms pass`)
    this.#clock.advance(ms)
  }

  async #restart(): Promise<void> {
    const index = Math.floor(this.#random() * this.#places.length)
    const place = this.#places[index] as Place
    this.#tell(`server ${index} restarts`)
    await place.server.close()
    for (const connection of this.#connections.filter((each) => each.place === place)) connection.end()
    this.#connections = this.#connections.filter((each) => each.place !== place)
    Object.assign(place, await this.#start(place.generation + 1))
  }

  /** A token creates another one while a second server revokes it: whichever comes first, nothing of it may work. */
  async #race(): Promise<void> {
    const by = this.#known.find(
      (each) => each.role === 'drive' && isValid(each, this.#clock.now()) && depthOf(each) < maxDepth,
    )
    const [one, two] = this.#places
    if (!by || !one || !two) return
    this.#tell(`${by.id} creates a token while it is revoked`)
    const [answer, revoked] = await Promise.all([
      this.#ask(one, '/api/tokens', by.token, { role: 'view' }),
      this.#random() < 0.5 ? two.tokens.revoke(by.id, 'default') : this.#file.revoke(by.id, 'default'),
    ])
    if (!revoked) this.#complain('a valid token could not be revoked')
    if (answer.status === 201) this.#take(answer, { ...by, role: 'view' }, by)
    else if (answer.status !== 401) this.#complain(`a create beside a revocation was answered with ${answer.status}`)
    this.#markRevoked(by)
    await this.#ownerCreates({ role: 'drive' })
  }

  async #connect(): Promise<void> {
    // Often one that is going to expire.
    const ending = this.#known.filter((each) => each.expiresAt !== undefined && isValid(each, this.#clock.now()))
    const token = this.#random() < 0.6 && ending.length > 0 ? this.#pick(ending) : this.#pick(this.#known)
    const place = this.#pick(this.#places)
    const what = this.#pick(['socket', 'stream', 'editor'] as const)
    this.#tell(`${token.id} opens a ${what}`)
    const mayOpen = isValid(token, this.#clock.now()) && mayView(token)
    const opened = await openers[what](place, token, this.#visible(token)[0] ?? 'a')
    this.#count('requests')
    if ((opened !== undefined) !== mayOpen) this.#complain(`a ${what} was ${opened ? 'opened' : 'refused'}`)
    if (!opened) return
    this.#count('connections')
    const connection: OpenConnection = { what, token, place, generation: place.generation, isClosed: false, ...opened }
    void connection.closed.then(() => (connection.isClosed = true))
    this.#connections.push(connection)
  }

  /** Compares servers with the model, for some tokens and for all connections. */
  async #check(tokens: readonly KnownToken[], places: readonly Place[]): Promise<void> {
    // Servers look for revocations of others once a second.
    this.#clock.advance(2000)
    const now = this.#clock.now()
    for (const token of tokens) {
      for (const place of places) await this.#checkToken(token, place, now)
    }
    for (const connection of this.#connections) {
      if (isValid(connection.token, now)) {
        if (connection.isClosed)
          this.#complain(`the ${connection.what} of the valid token ${connection.token.id} was closed`)
      } else if (!(await isSettled(connection.closed))) {
        this.#complain(`the ${connection.what} of ${connection.token.id} is open although the token is over`)
      }
    }
    this.#connections = this.#connections.filter(({ isClosed }) => !isClosed)
  }

  async #checkToken(token: KnownToken, place: Place, now: number): Promise<void> {
    const { status, body } = await this.#ask(place, '/api/caller', token.token)
    const isGood = isValid(token, now)
    if ((status === 200) !== isGood || (status !== 200 && status !== 401)) {
      return this.#complain(`${token.id} is ${isGood ? 'valid' : 'over'} and was answered with ${status}`)
    }
    if (!isGood) return
    const { tenant, ...caller } = body as { tenant: string } & WireRights
    const rights = fromWire(caller)
    if (tenant !== 'default' || isWider(rights, token) || isWider(token, rights)) {
      this.#complain(`${token.id} is ${JSON.stringify(body)}, not ${JSON.stringify(token)}`)
    }
    const listed = await this.#ask(place, '/api/sessions', token.token)
    if ((listed.status === 200) !== mayView(token)) this.#complain(`${token.role} got ${listed.status} for a list`)
    const { sessions = [] } = listed.body as { sessions?: { id: string }[] }
    const wanted = mayView(token) ? this.#visible(token).map((each) => place.sessions.get(each) ?? '') : []
    if (
      sessions
        .map(({ id }) => id)
        .toSorted()
        .join() !== wanted.toSorted().join()
    ) {
      this.#complain(
        `${token.id} with the folder ${token.folder} sees ${sessions.length} sessions, not ${wanted.length}`,
      )
    }
  }

  /** The folders whose sessions a token may see. */
  #visible({ folder }: Rights): string[] {
    return folders.filter((each) => folder === undefined || `${join(this.#folder, each)}/`.startsWith(`${folder}/`))
  }

  #expectedGrant(by: KnownToken, wanted: Wanted): Rights | undefined {
    const mayCreate = isValid(by, this.#clock.now()) && by.role === 'drive' && depthOf(by) < maxDepth
    const isOver = wanted.expiresAt !== undefined && wanted.expiresAt <= this.#clock.now()
    return mayCreate && !isOver ? granted(by, wanted) : undefined
  }

  #judgeCreated(answer: Answer, about: { by: KnownToken; expected: Rights | undefined; wanted: Wanted }): void {
    const { by, expected, wanted } = about
    if (!expected) {
      this.#count('refused')
      if (answer.status < 400) this.#complain(`${by.id} got ${JSON.stringify(wanted)}: ${answer.text}`)
      else if (answer.status >= 500) this.#complain(`a wider token was answered with ${answer.status}`)
      return
    }
    if (answer.status === 201) this.#take(answer, expected, by)
    else this.#complain(`${by.id} did not get ${JSON.stringify(wanted)}: ${answer.status} ${answer.text}`)
  }

  #take({ body }: Answer, expected: Rights, parent: KnownToken): void {
    const { id, token, ...wire } = body as { id: string; token: string } & WireRights
    const rights = fromWire(wire)
    if (isWider(rights, parent)) this.#complain(`${id} is wider than its creator ${parent.id}: ${JSON.stringify(body)}`)
    const { role, folder, expiresAt, limits } = expected
    this.#know({ role, folder, expiresAt, limits, id, token, parent, isRevoked: false })
  }

  #know(token: KnownToken): void {
    this.#known.push(token)
    this.#count('created')
  }

  #markRevoked(target: KnownToken): void {
    target.isRevoked = true
    this.#count('revoked')
  }

  #someRights(): Wanted {
    const limits: Limits = {
      ...(this.#random() < 0.35 && { sessions: this.#pick([1, 5, 9]) }),
      ...(this.#random() < 0.35 && { spend_per_day: this.#pick([0, 2.5, 7]) }),
    }
    return {
      role: this.#pick([...roles, 'drive', 'drive', 'drive'] as const),
      ...(this.#random() < 0.3 && { folder: join(this.#folder, this.#pick(folders)) }),
      ...(this.#random() < 0.4 && { expiresAt: this.#clock.now() + this.#pick([1, 5, 30]) * minuteMs }),
      ...(Object.keys(limits).length > 0 && { limits }),
    }
  }

  async #ask(place: Place, path: string, token?: string, json?: object, method?: string): Promise<Answer> {
    this.#count('requests')
    const { server } = place
    // Through all checks of a request, but not through a socket, so that many histories fit into a minute.
    const response = await server.routes.app.request(`${server.url}${path}`, {
      method: method ?? (json ? 'POST' : 'GET'),
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(json && { 'content-type': 'application/json' }),
      },
      ...(json && { body: JSON.stringify(json) }),
    })
    const text = await response.text()
    return { status: response.status, text, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }

  /** Mostly a token that may create others, preferably a recent one. */
  #pickCreator(): KnownToken {
    const now = this.#clock.now()
    const able = this.#known.filter((each) => each.role === 'drive' && isValid(each, now))
    return this.#random() < 0.8 && able.length > 0 ? this.#pick(able.slice(-3)) : this.#pick(this.#known)
  }

  #sample(count: number): KnownToken[] {
    return Array.from({ length: count }, () => this.#pick(this.#known))
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T
  }

  #count(figure: string): void {
    this.figures[figure] = (this.figures[figure] ?? 0) + 1
  }

  #tell(line: string): void {
    this.#say?.(line)
  }

  #complain(problem: string): void {
    this.problems.push(problem)
    this.#say?.(`PROBLEM ${problem}`)
  }
}

interface WireRights {
  role: Rights['role']
  folder?: string
  expires_at?: string
  limits?: Limits
}

function fromWire({ role, folder, expires_at: expires, limits = {} }: WireRights): Rights {
  return { role, folder, expiresAt: expires === undefined ? undefined : Date.parse(expires), limits }
}

function rightsOf({ role, folder, expiresAt, limits = {} }: Wanted): Rights {
  return { role, folder, expiresAt, limits }
}

function bodyOf({ role, folder, expiresAt, limits }: Wanted): object {
  return {
    role,
    ...(folder !== undefined && { folder }),
    ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
    ...(limits && { limits }),
  }
}

/** Whether a token is no longer in the file: it, or one that it derives from, was revoked. */
function isGone({ isRevoked, parent }: KnownToken): boolean {
  return isRevoked || (parent !== undefined && isGone(parent))
}
