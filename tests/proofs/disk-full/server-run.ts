import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { onlyModel, allowAll } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { agentSessions } from '../../../packages/server/src/drivers/agent-sessions.ts'
import { TokenStore } from '../../../packages/server/src/auth/token-store.ts'
import { startServer } from '../../../packages/server/src/server.ts'
import type { SmallDisk } from './small-disk.ts'

const patienceMs = 20_000

/**
 * A server whose disk fills up in the middle of an answer: its state, its list and its readiness say so, and when there is room again
 * the session goes on, with the reason in its log. Returns what was wrong.
 */
export async function runServerOnFullDisk(disk: SmallDisk, random: () => number): Promise<string[]> {
  const problems: string[] = []
  const folder = join(disk.folder, 'server')
  mkdirSync(folder)
  let skewMs = 0
  const clock = { ...systemClock, now: () => systemClock.now() + skewMs }
  const store = openFileStore({ folder: join(folder, 'sessions') })
  const chunks = 1 + Math.floor(random() * 30)
  let says = script()
  for (let chunk = 0; chunk < chunks; chunk++) says = says.text(`chunk ${chunk} `)
  const model = scriptedModel(
    says
      .do(() => disk.fill())
      .text('x'.repeat(10_000))
      .step()
      .text('Again.'),
  )
  const sessions = agentSessions({
    store,
    models: onlyModel(model),
    tools: () => [],
    gate: () => allowAll,
    hasSubagents: false,
  })
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const headers = { authorization: `Bearer ${tokens.takeFirstToken() ?? ''}` }
  const server = await startServer({ tenants: new Map([['default', sessions]]), tokens, clock })
  const ask = async (path: string): Promise<{ status: number; body: unknown }> => {
    // The last look at the disk must not count any more.
    skewMs += 10_000
    const answer = await fetch(`${server.url}${path}`, { headers })
    return { status: answer.status, body: await answer.json() }
  }
  const expectSaid = (what: string, said: unknown, ...words: string[]): void => {
    const text = JSON.stringify(said)
    for (const word of words) if (!text.includes(word)) problems.push(`${what} does not say ${word}: ${text}`)
  }
  try {
    const id = await sessions.create({ cwd: '/' })
    const live = await sessions.get(id)
    const until = async (what: string, isTrue: () => boolean): Promise<void> => {
      const end = performance.now() + patienceMs
      while (!isTrue()) {
        if (performance.now() > end) return void problems.push(`never: ${what}`)
        await setTimeout(5)
      }
    }
    expectSaid('readiness before', await ask('/api/ready'), '"status":200')
    await live.perform('a', 'me', { op: 'prompt', args: { text: 'go' } })
    await until('the run stops', () => !live.driver.isBusy)
    expectSaid('the state', live.board.get('run'), '"is_busy":false', 'storage-failed', 'The disk is full.')
    expectSaid('the list', await ask('/api/sessions'), '"status":"idle"', 'storage-failed', 'The disk is full.')
    expectSaid('readiness', await ask('/api/ready'), '"status":503', 'The disk is full.')
    disk.makeRoom()
    expectSaid('readiness after', await ask('/api/ready'), '"status":200')
    expectSaid('the next prompt', await live.perform('b', 'me', { op: 'prompt', args: { text: 'on' } }), '"ok":true')
    await until('the next run ends', () => !live.driver.isBusy && live.session.openRun === null)
    const ends: string[] = []
    for await (const line of live.session.lines())
      if (line.type === 'line' && line.text.includes('"run_end"')) ends.push(line.text)
    expectSaid('the log', ends, 'storage-failed', 'completed')
    if (JSON.stringify(await ask('/api/sessions')).includes('stopped')) problems.push('the list still says stopped')
  } finally {
    disk.makeRoom()
    await server.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return problems
}
