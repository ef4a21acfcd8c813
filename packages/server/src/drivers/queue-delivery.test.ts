import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import type { ServerFrame } from '@tapetree/client/protocol'
import { memoryStore } from '@tapetree/session'
import { expect, onTestFinished, test, vi } from 'vitest'
import { AgentDriver } from './agent-driver.ts'
import { LiveSession } from '../live/live-session.ts'

/** A live session and its queue notices, in the order that a screen receives them. */
async function open(): Promise<{ live: LiveSession; told: string[] }> {
  const model = scriptedModel([], { otherwise: () => script().text('Well.') })
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [],
    gate: () => allowAll,
    hasSubagents: false,
    cwd: '/',
  })
  const live = await LiveSession.open(new AgentDriver({ agent }), { tickMs: 1 })
  onTestFinished(() => live.close())
  const told: string[] = []
  const sink = {
    buffered: 0,
    send: (bytes: Buffer) => {
      const frame = JSON.parse(bytes.toString()) as ServerFrame | { seq: number; message?: { role: string } }
      if ('seq' in frame) told.push(...(frame.message?.role === 'user' ? ['prompt'] : []))
      else if (frame.type === 'queue_updated') told.push(frame.data.action)
      else if (frame.type.startsWith('queue_message')) told.push(frame.type)
    },
    close: () => undefined,
  }
  const request = { client: { id: 'screen' } }
  live.attach(request, sink, await live.prepare(request))
  return { live, told }
}

test('a message queued in an idle session is delivered, and announced as a queued one', async () => {
  const { live, told } = await open()
  await live.perform('1', 'me', { op: 'queue.add', args: { message: 'go' } })
  await vi.waitFor(() => expect(told).toContain('queue_message_sent'))
  expect(told).toEqual(['added', 'queue_message_sending', 'removed', 'prompt', 'queue_message_sent'])
})

test('a message that is held while its run is prepared stays queued, and is delivered on release', async () => {
  const { live, told } = await open()
  const ack = await live.perform('1', 'me', { op: 'queue.add', args: { message: 'go' } })
  const { id } = ack.result as { id: string }
  expect(await live.perform('2', 'me', { op: 'queue.hold', args: { id } })).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
  expect(live.session.inbox.messages).toMatchObject([{ id, held: true }])
  await live.perform('3', 'me', { op: 'queue.release', args: { id } })
  await vi.waitFor(() => expect(told).toContain('queue_message_sent'))
  expect(told.filter((each) => each === 'prompt')).toHaveLength(1)
})

test('a message that arrives while a cancelled run ends is not left queued', async () => {
  const { live, told } = await open()
  const { session } = live
  let released: Promise<unknown> | undefined
  // As soon as the end of the run is durable, and before the agent is idle.
  session.subscribe(({ line }) => {
    if (line.type !== 'run_end' || released) return
    released = live.perform('3', 'me', { op: 'queue.add', args: { message: 'and then?' } })
    void released.then(() => live.perform('4', 'me', { op: 'queue.release', args: {} }))
  })
  const ack = await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })
  const { run_id: runId } = ack.result as { run_id: string }
  await live.perform('2', 'me', { op: 'cancel', args: { run_id: runId } })
  await vi.waitFor(() => expect(told).toContain('queue_message_sent'))
})
