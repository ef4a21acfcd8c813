import { systemClock, type Clock } from '@tapetree/agent/run'
import { script } from '@tapetree/agent/testing'
import { nodeFilePort, openFileStore, type FilePort } from '@tapetree/session/stores/file'
import { randomBytes } from 'node:crypto'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { askingGate } from '../../../packages/server/src/http/testing/asking-gate.ts'
import { FailureLimiter } from '../../../packages/server/src/auth/failure-limiter.ts'
import { Gatekeeper } from '../../../packages/server/src/auth/gatekeeper.ts'
import { AllowedHosts } from '../../../packages/server/src/auth/host-origin.ts'
import { UsageLimits } from '../../../packages/server/src/auth/limits.ts'
import { Pairing } from '../../../packages/server/src/auth/pairing.ts'
import { TokenStore } from '../../../packages/server/src/auth/token-store.ts'
import { addAuthRoutes } from '../../../packages/server/src/http/routes/auth.ts'
import { TestApi } from '../../../packages/server/src/http/testing/test-api.ts'
import type { KnownIds } from './arbitrary.ts'

/** Folders around a store, with a canary that nothing may read or change. */
export interface Stage {
  parent: string
  root: string
  /** The store and its folder, which it makes and syncs: where it may be. */
  store: string
  own: string
  canary: string
  /** What the canary says. */
  secret: string
}

export async function buildStage(parent: string): Promise<Stage> {
  const stage: Stage = {
    parent,
    root: join(parent, 'root'),
    store: join(parent, 'store', 'sessions'),
    own: join(parent, 'store'),
    canary: join(parent, 'canary.txt'),
    secret: `canary ${randomBytes(16).toString('hex')}`,
  }
  for (const folder of ['root/src', 'root/deep', 'secret', 'root-evil', 'store']) {
    await mkdir(join(parent, folder), { recursive: true })
  }
  for (const file of ['canary.txt', 'secret/canary.txt', 'root-evil/canary.txt']) {
    await writeFile(join(parent, file), stage.secret)
  }
  // Names are secrets too: none of this one may be shown.
  await writeFile(join(parent, 'secret', stage.secret.replace(' ', '-')), '')
  await writeFile(join(stage.root, 'src/main.ts'), 'export {}')
  for (const link of ['leak', '.leak', 'deep/leak']) await symlink(join(parent, 'secret'), join(stage.root, link))
  return stage
}

/** Waits are over at once: what is tried is what happens, not when. */
const hastyClock: Clock = {
  now: () => Date.now(),
  wait: (ms, signal) => systemClock.wait(Math.min(ms, 2), signal),
}

/** All routes of a server, those that let people in as well; who calls is believed. */
export async function openApi(stage: Stage, touched: Set<string>): Promise<TestApi> {
  const tokens = await TokenStore.open({ file: join(stage.own, 'tokens.json') })
  const { record } = await tokens.create({ tenant: 'local', role: 'drive' })
  const api = new TestApi({
    tokenId: record.id,
    store: openFileStore({ folder: stage.store, durability: 'accepted', port: watchedPort(touched) }),
    otherwise: ({ messages }) =>
      messages.length % 3 === 0 ? script().toolCall(`call-${messages.length}`, 'act', {}) : script().text('Said.'),
    agent: { gate: askingGate, cwd: stage.root },
    clock: hastyClock,
    parts: {
      roots: () => [stage.root],
      models: () => Promise.resolve([]),
      settings: () => Promise.resolve({ values: {} as never, origins: new Map(), problems: [] }),
    },
  })
  const gatekeeper = new Gatekeeper({
    tokens,
    limiter: new FailureLimiter(systemClock),
    hosts: new AllowedHosts([]),
    ownerTenant: 'local',
  })
  const limits = new UsageLimits({ tenants: new Map(), tokens, clock: systemClock })
  const roots = (): string[] => [stage.root]
  addAuthRoutes(api.routes, { gatekeeper, tokens, limits, roots, pairing: new Pairing(tokens), clock: systemClock })
  return api
}

/** Tells of every path that the store has to do with. */
function watchedPort(touched: Set<string>): FilePort {
  const port = nodeFilePort()
  return new Proxy(port, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        for (const each of args) if (typeof each === 'string') touched.add(each)
        return (member as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
}

/** Sessions with something of everything in them, so that there is something to name. */
export async function knownIds(api: TestApi, stage: Stage): Promise<KnownIds> {
  const known: Record<'id' | 'entry_id' | 'msg_id' | 'request_id' | 'sha256' | 'path' | 'run_id', string[]> = {
    id: [],
    entry_id: [],
    msg_id: [],
    request_id: [],
    sha256: [],
    path: [stage.root, join(stage.root, 'src')],
    run_id: [],
  }
  for (let count = 0; count < 4; count++) {
    const session = await api.session({ cwd: stage.root, prompt: 'hello' })
    known.id.push(session.slice('/api/sessions/'.length))
    const queued = await api.post(`${session}/queue`, { message: 'wait' })
    if (queued.ok) known.msg_id.push(((await queued.json()) as { id: string }).id)
    const tree = (await (await api.get(`${session}/tree`)).json()) as { nodes: { id: string }[] }
    known.entry_id.push(...tree.nodes.map(({ id }) => id).slice(0, 10))
    const image = await api.request(`${session}/images`, {
      method: 'POST',
      body: new Uint8Array(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')),
      headers: { 'content-type': 'image/png' },
    })
    known.sha256.push(((await image.json()) as { id: string }).id)
    const { permissions } = (await (await api.get(`${session}/permissions`)).json()) as {
      permissions: { request_id: string }[]
    }
    known.request_id.push(...permissions.map(({ request_id }) => request_id))
  }
  const more = { cwd: known.path, left: known.entry_id, right: known.entry_id, before_id: known.msg_id }
  return { ...known, ...more, parent_session: known.id, image_ids: known.sha256, token_id: [] }
}
