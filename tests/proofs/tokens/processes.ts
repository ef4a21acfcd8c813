import { roles } from '@tapetree/client/protocol'
import { TokenStore } from '@tapetree/server'
import { randomFrom } from '@tapetree/session/testing'
import { WebSocket } from 'ws'
import { TokenServerProcess } from '../../../packages/server/src/auth/testing/token-server-process.ts'
import { ask, type Answer } from '../../../packages/server/src/testing/running-server.ts'
import { closeOf } from './connections.ts'
import type { HistoryResult } from './history.ts'

const rounds = 2
const atOnce = 8

interface Known {
  id: string
  token: string
  role: string
  parent: Known | undefined
  /** `unknown`: its server was killed during the revocation. */
  state: 'good' | 'revoked' | 'unknown'
}

/** Real servers in processes of their own over one token file, shared by all histories. */
export class ServerProcesses implements AsyncDisposable {
  readonly #servers: readonly TokenServerProcess[]
  /** As `tapetree tokens` does it: the file without a server. */
  readonly #file: TokenStore

  private constructor(servers: readonly TokenServerProcess[], file: TokenStore) {
    this.#servers = servers
    this.#file = file
  }

  static async start(file: string): Promise<ServerProcesses> {
    const tokens = await TokenStore.open({ file, first: null })
    const servers = [new TokenServerProcess(file), new TokenServerProcess(file)]
    await Promise.all(servers.map((server) => server.start()))
    return new ServerProcesses(servers, tokens)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.kill()))
  }

  /** Several operations at once, during which a server may be killed; then all servers must agree with the model. */
  async play(seed: number): Promise<HistoryResult> {
    const random = randomFrom(seed)
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
    const problems: string[] = []
    const figures = { requests: 0, created: 0, revoked: 0, killed: 0 }
    const { record, token } = await this.#file.create({ tenant: 'default', role: 'drive' })
    const root: Known = { id: record.id, token, role: 'drive', parent: undefined, state: 'good' }
    const known: Known[] = [root]

    const send = async (server: TokenServerProcess, path: string, options: object): Promise<Answer | undefined> => {
      figures.requests++
      // Undefined if the server was killed before it answered.
      return ask(path, { url: server.url, ...options }).catch(() => undefined)
    }
    const remember = (answer: Answer | undefined, parent: Known): void => {
      if (answer?.status !== 201) return
      const { id, token: made, role } = answer.body as { id: string; token: string; role: string }
      known.push({ id, token: made, role, parent, state: 'good' })
      figures.created++
    }
    const drivers = (): Known[] => known.filter(({ role }) => role === 'drive')
    const create = async (server: TokenServerProcess): Promise<void> => {
      const by = pick(drivers())
      remember(await send(server, '/api/tokens', { token: by.token, json: { role: pick(roles) } }), by)
    }
    const pair = async (server: TokenServerProcess): Promise<void> => {
      const by = pick(drivers())
      const begun = await send(server, '/api/pairing', { token: by.token, json: { role: pick(roles) } })
      if (begun?.status !== 201) return
      const { code } = begun.body as { code: string }
      remember(await send(server, '/api/pair', { json: { code, as: 'token' } }), by)
    }
    const revoke = async (server: TokenServerProcess): Promise<void> => {
      const others = known.filter((each) => each !== root && each.state === 'good')
      const target = others.length > 0 ? pick(others) : undefined
      if (!target) return
      target.state = 'unknown'
      if (random() < 0.3) {
        await this.#file.revoke(target.id, 'default')
        target.state = 'revoked'
      } else {
        const answer = await send(server, `/api/tokens/${target.id}`, { token: root.token, method: 'DELETE' })
        // It may have gone with the token that it derives from.
        if (answer) target.state = 'revoked'
        if (answer && answer.status !== 204 && answer.status !== 404) problems.push(`DELETE answered ${answer.status}`)
      }
      figures.revoked++
    }

    for (let round = 0; round < rounds; round++) {
      const watchers = await this.#watch(
        pick(this.#servers),
        known.filter((each) => stateOf(each) === 'good').slice(-2),
      )
      const victim = random() < 0.4 ? pick(this.#servers) : undefined
      const work = Array.from({ length: atOnce }, () => pick([create, create, pair, revoke])(pick(this.#servers)))
      if (victim) {
        await Promise.race(work)
        await victim.kill()
        figures.killed++
      }
      await Promise.all(work)
      if (victim) await victim.start()
      for (const each of known) {
        const taken = await Promise.all(this.#servers.map((server) => server.takes(each.token)))
        figures.requests += taken.length
        const state = stateOf(each)
        const isRight =
          state === 'unknown' ? taken[0] === taken[1] : taken.every((isTaken) => isTaken === (state === 'good'))
        if (!isRight) problems.push(`a token that is ${state} was taken: ${taken.join(' and ')}`)
        if (each.state === 'unknown') each.state = taken[0] ? 'good' : 'revoked'
      }
      for (const { of, server, socket, closed } of watchers) {
        if (stateOf(of) === 'revoked' && (await closed()) === 'open') problems.push('a socket outlives its token')
        if (stateOf(of) === 'good' && server !== victim && socket.readyState !== WebSocket.OPEN) {
          problems.push('the socket of a valid token was closed')
        }
        socket.terminate()
      }
    }
    await this.#file.revoke(root.id, 'default')
    for (const { token: last } of known) {
      const taken = await Promise.all(this.#servers.map((server) => server.takes(last)))
      if (taken.includes(true)) problems.push('a token works although the one that it derives from was revoked')
    }
    return { problems, figures }
  }

  async #watch(server: TokenServerProcess, tokens: readonly Known[]): Promise<Watcher[]> {
    const watchers = tokens.filter(({ role }) => role !== 'metrics' && role !== 'host').map((of) => watch(server, of))
    await Promise.all(watchers.map(({ opened }) => opened))
    return watchers
  }
}

interface Watcher {
  of: Known
  server: TokenServerProcess
  socket: WebSocket
  opened: Promise<unknown>
  /** Waits for the server to close it, which takes at most two seconds and longer on a busy machine. */
  closed: () => Promise<'open' | 'closed'>
}

const patienceMs = 10_000

function watch(server: TokenServerProcess, of: Known): Watcher {
  const url = `${server.url.replace('http', 'ws')}/api/sessions/${server.session}/ws`
  const socket = new WebSocket(url, ['tapetree.v1', `bearer.${of.token}`])
  socket.on('error', () => undefined)
  const ended = closeOf(socket).then(() => 'closed' as const)
  const message = new Promise<void>((resolve) => socket.once('message', () => resolve()))
  socket.on('open', () => socket.send(JSON.stringify({ type: 'attach', data: { client: { id: `c-${of.id}` } } })))
  const closed = async (): Promise<'open' | 'closed'> => {
    const late = Promise.withResolvers<'open'>()
    const timer = setTimeout(() => late.resolve('open'), patienceMs)
    try {
      return await Promise.race([ended, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
  return { of, server, socket, opened: Promise.race([message, ended]), closed }
}

/** A token ends with the one that it derives from. */
function stateOf({ state, parent }: Known): Known['state'] {
  const above = parent ? stateOf(parent) : 'good'
  if (state === 'revoked' || above === 'revoked') return 'revoked'
  return state === 'unknown' || above === 'unknown' ? 'unknown' : 'good'
}
