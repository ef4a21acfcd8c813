import { randomFrom } from '@tapetree/session/testing'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { ask, type Answer, type Asked } from '../testing/running-server.ts'
import { TokenServerProcess } from './testing/token-server-process.ts'
import { TokenStore } from './token-store.ts'

let folder: string
let file: string
/** A token of role `drive`, created before any server started. */
let owner: string
const servers: TokenServerProcess[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'token-servers-'))
  file = join(folder, 'tokens.json')
  owner = (await TokenStore.open({ file })).takeFirstToken() ?? ''
})
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.kill()))
  await rm(folder, { recursive: true, force: true })
})

async function startServer(): Promise<TokenServerProcess> {
  const server = new TokenServerProcess(file)
  servers.push(server)
  await server.start()
  return server
}

/** With the token of the owner, unless another is given. */
function askAsOwner(server: TokenServerProcess, path: string, options: Omit<Asked, 'url'> = {}): Promise<Answer> {
  return ask(path, { url: server.url, token: owner, ...options })
}

test('a token that one server revokes is rejected by the other at its next request, and its sockets are closed', async () => {
  const [one, two] = await Promise.all([startServer(), startServer()])
  const made = (await askAsOwner(one, '/api/tokens', { json: { role: 'view' } })).body as { id: string; token: string }
  expect(await two.takes(made.token)).toBe(true)
  const address = `${two.url.replace('http', 'ws')}/api/sessions/${two.session}/ws`
  const socket = new WebSocket(address, ['tapetree.v1', `bearer.${made.token}`])
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'screen' } } }))
  await once(socket, 'message')
  const closed = once(socket, 'close')
  expect((await askAsOwner(one, `/api/tokens/${made.id}`, { method: 'DELETE' })).status).toBe(204)
  expect(await two.takes(made.token)).toBe(false)
  expect((await closed)[0]).toBe(4401)
})

/** The state of a token. `unknown`: its server was killed during the revocation. */
interface Known {
  id: string
  token: string
  state: 'good' | 'revoked' | 'unknown'
}

const rounds = 12
const atOnce = 6

test('two servers that issue, revoke, pair and die at random agree with a model of their tokens', async () => {
  const seed = Number(process.env['TOKENS_SEED'] ?? randomInt(2 ** 31))
  const random = randomFrom(seed)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const pair = await Promise.all([startServer(), startServer()])
  const known: Known[] = []
  const remember = (answer: Answer | undefined): void => {
    if (answer?.status !== 201) return
    const { id, token } = answer.body as { id: string; token: string }
    known.push({ id, token, state: 'good' })
  }
  // Undefined if the server was killed before it answered.
  const attempt = (...args: Parameters<typeof askAsOwner>): Promise<Answer | undefined> =>
    askAsOwner(...args).catch(() => undefined)
  const issue = async (server: TokenServerProcess): Promise<void> =>
    remember(await attempt(server, '/api/tokens', { json: { role: 'view' } }))
  const pairUp = async (server: TokenServerProcess): Promise<void> => {
    const begun = await attempt(server, '/api/pairing', { json: { role: 'view' } })
    if (begun?.status !== 201) return
    const { code } = begun.body as { code: string }
    remember(await attempt(server, '/api/pair', { json: { code, as: 'token' } }))
  }
  const revoke = async (server: TokenServerProcess): Promise<void> => {
    const good = known.filter(({ state }) => state === 'good')
    if (good.length === 0) return
    const token = pick(good)
    token.state = 'unknown'
    const answer = await attempt(server, `/api/tokens/${token.id}`, { method: 'DELETE' })
    if (answer) expect(answer.status).toBe(204)
    if (answer) token.state = 'revoked'
  }
  for (let round = 0; round < rounds; round++) {
    const victim = random() < 0.4 ? pick(pair) : undefined
    const work = Array.from({ length: atOnce }, () => pick([issue, issue, pairUp, revoke])(pick(pair)))
    if (victim) {
      await Promise.race(work)
      await victim.kill()
    }
    await Promise.all(work)
    if (victim) await victim.start()
    for (const { id, token, state } of known) {
      const taken = await Promise.all(pair.map((server) => server.takes(token)))
      expect({ seed, round, id, taken }).toEqual({
        seed,
        round,
        id,
        taken: state === 'unknown' ? [taken[0], taken[0]] : taken.map(() => state === 'good'),
      })
    }
    for (const token of known.filter(({ state }) => state === 'unknown')) {
      token.state = (await pair[0].takes(token.token)) ? 'good' : 'revoked'
    }
  }
  expect(known.length).toBeGreaterThan(rounds)
}, 120_000)
