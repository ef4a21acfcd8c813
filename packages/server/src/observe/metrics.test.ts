import { script } from '@tapetree/agent/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { Metrics } from './metrics.ts'
import { observedSessions, promptOf } from './testing/observed-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function measured(says = script()): { metrics: Metrics; sessions: LiveSessions } {
  const tenants = new Map<string, LiveSessions>()
  const metrics = new Metrics(tenants)
  cleanUps.push(() => metrics.close())
  const sessions = observedSessions({ says, observers: [metrics.observe] })
  tenants.set('local', sessions)
  cleanUps.push(() => sessions.close())
  return { metrics, sessions }
}

/** The samples, by name and labels. */
async function samples(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.metricsText()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

describe('metrics', () => {
  test('count sessions, lines, text, model calls and tokens', async () => {
    const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 60 }
    const { metrics, sessions } = measured(script().text('Hello ', 'there.').usage(usage))
    const live = await sessions.get(await sessions.create({}))
    await promptOf(live, 'Hi')
    const found = await samples(metrics)
    const of = (name: string): number | undefined => found.get(`tapetree_${name}`)
    expect(of('sessions_live')).toBe(1)
    expect(of('connections')).toBe(0)
    expect(of('sessions_storage_failed')).toBe(0)
    expect(of('lines_total{type="message"}')).toBe(2)
    expect(of('lines_total{type="run_end"}')).toBe(1)
    expect(of('deltas_total{kind="text"}')).toBeGreaterThan(0)
    expect(of('commands_total{op="prompt",outcome="ok"}')).toBe(1)
    const model = 'provider="scripted",model="scripted-1"'
    expect(of(`model_calls_total{${model},outcome="ok"}`)).toBe(1)
    expect(of(`model_tokens_total{${model},type="input"}`)).toBe(100)
    expect(of(`model_tokens_total{${model},type="cache_read"}`)).toBe(60)
    expect(of('event_loop_delay_seconds{percentile="99"}')).toBeTypeOf('number')
    expect(of('process_resident_bytes')).toBeGreaterThan(1_000_000)
  })

  test('go on when the session was opened again, because its tools work elsewhere now', async () => {
    const { metrics, sessions } = measured(script().text('One.').step().text('Two.'))
    const live = await sessions.get(await sessions.create({}))
    await promptOf(live, 'First')
    const before = await samples(metrics)
    await live.reopen()
    await promptOf(live, 'Second')
    const after = await samples(metrics)
    const more = (name: string): number => (after.get(`tapetree_${name}`) ?? 0) - (before.get(`tapetree_${name}`) ?? 0)
    expect(more('lines_total{type="message"}')).toBe(2)
    expect(more('deltas_total{kind="text"}')).toBeGreaterThan(0)
    expect(more('commands_total{op="prompt",outcome="ok"}')).toBe(1)
  })

  test("count commands by outcome, without labels of the client's choice", async () => {
    const { metrics, sessions } = measured()
    const live = await sessions.get(await sessions.create({}))
    await live.perform('1', 'me', { op: 'no-such-operation', args: {} })
    await live.perform('2', 'me', { op: 'cancel', args: { run_id: 'other' } })
    const text = await metrics.metricsText()
    expect(text).toContain('tapetree_commands_total{op="invalid",outcome="invalid-command"} 1')
    expect(text).toContain('tapetree_commands_total{op="cancel",outcome="run-not-current"} 1')
    expect(text).not.toContain('no-such-operation')
  })

  test('count a failed model call for the model in use', async () => {
    const { metrics, sessions } = measured(script().error('auth'))
    await promptOf(await sessions.get(await sessions.create({})), 'Hi')
    expect(await metrics.metricsText()).toContain(
      'tapetree_model_calls_total{provider="scripted",model="scripted-1",outcome="failed"} 1',
    )
  })

  test('count nothing for a closed session', async () => {
    const { metrics, sessions } = measured()
    const id = await sessions.create({})
    await sessions.get(id)
    await sessions.release(id)
    expect((await samples(metrics)).get('tapetree_sessions_live')).toBe(0)
  })

  test('of two servers in one process are separate', async () => {
    const [one, two] = [measured(), measured()]
    await one.sessions.get(await one.sessions.create({}))
    expect((await samples(one.metrics)).get('tapetree_sessions_live')).toBe(1)
    expect((await samples(two.metrics)).get('tapetree_sessions_live')).toBe(0)
  })
})
