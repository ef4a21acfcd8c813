import { text, type Session } from '@tapetree/session'
import { randomFrom } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import type { RemoteSession } from './remote-session.ts'
import { caughtUp, foldOf, openSession, serve, shown } from './testing/opened-sessions.ts'
import type { Script, ScriptedServer } from './testing/scripted-server.ts'

const histories = Number(process.env['HISTORIES'] ?? 40)

test('whatever is cut, lost, duplicated, corrupted or forgotten, at rest every client shows the log, and each command took effect once', async () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  for (let history = 0; history < histories; history++) {
    const name = `history ${history} of seed ${seed}`
    const random = randomFrom(seed + history)
    const server = await serve()
    const clients = await Promise.all(
      ['one', 'two'].map((id) => openSession(server, { client: { id }, window: 500, deltas: true })),
    )
    server.script = faults(random)
    const answers: Promise<unknown>[] = []
    for (let step = 0; step < 25; step++) await act(server, { clients, answers, random, step })
    server.script = {}
    await Promise.all(answers)
    // A skipped line is detected by the one after it.
    await server.session.appendMessage('user', [text('the last')])
    await Promise.all(clients.map((client) => caughtUp(client, server)))
    const folded = await foldOf(server.session)
    const [whole, all] = [shown(folded), [...folded.path.items]]
    for (const client of clients) {
      const known = [...client.transcript.path.items].filter(({ type }) => type !== 'gap')
      expect(known, name).toEqual(all.slice(all.length - known.length))
      while (await client.loadOlder(3));
      expect({ ...shown(client.transcript), inFlight: new Map() }, name).toEqual(whole)
      // Live text belongs only to items whose line has not arrived.
      const ids = new Set([...client.transcript.path.items].map(({ id }) => id))
      expect(
        [...client.transcript.inFlight.keys()].filter((item) => ids.has(item)),
        name,
      ).toEqual([])
    }
    expect(new Set(server.effects).size, name).toBe(server.effects.length)
    expect(server.effects.length, name).toBe(answers.length)
    for (const client of clients) await client.close()
    await server.close()
  }
})

/** Frames are lost, duplicated, swapped and truncated; cursors are corrupted; commands are lost. */
function faults(random: () => number): Script {
  let late: string | undefined
  return {
    outgoing: (frame, { socket }) => {
      const chance = random()
      if (chance < 0.04) {
        socket.terminate()
        return []
      }
      // A real socket never loses a single frame; this simulates a server that skips a line.
      if (chance < 0.06 && frame.startsWith('{"seq"')) return []
      if (chance < 0.1) return [frame, frame]
      if (chance < 0.12 && frame.startsWith('{"seq"') && late === undefined) {
        late = frame
        return []
      }
      const swapped = late === undefined ? [frame] : [frame, late]
      late = undefined
      return swapped
    },
    incoming: (frame, { socket }) => {
      const chance = random()
      if (frame.type === 'attach' && frame.data.after && chance < 0.2) frame.data.after.crc = 'ffffffff'
      if (frame.type !== 'cmd' || chance > 0.15) return true
      socket.terminate()
      return false
    },
  }
}

interface Scene {
  clients: RemoteSession[]
  answers: Promise<unknown>[]
  random: () => number
  step: number
}

async function act(server: ScriptedServer, { clients, answers, random, step }: Scene): Promise<void> {
  const client = clients[Math.floor(random() * clients.length)]
  const kind = Math.floor(random() * 14)
  if (client && kind < 4) {
    answers.push(kind < 3 ? client.prompt(`prompt ${step}`) : client.run('rename', { name: `name ${step}` }))
  } else if (kind === 4) {
    for (const { socket } of server.open) if (random() < 0.5) socket.terminate()
  } else if (kind === 5) {
    server.say({ type: 'delta', data: { item: `i${step}`, part: 0, kind: 'text', off: 0, text: 'flying', run: 'r' } })
  } else if (client && kind === 6) {
    client.forgetOlder(1 + Math.floor(random() * 4))
  } else {
    await append(server.session, { kind: Math.floor(random() * 9), step, random })
  }
  // Lets the sockets continue for a random number of ticks.
  for (let turn = random() * 4; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve))
}

interface Appended {
  kind: number
  step: number
  random: () => number
}

async function append(session: Session, { kind, step, random }: Appended): Promise<void> {
  switch (kind) {
    case 0:
      await session.append({ type: 'run_start', runStart: { runId: 'r', leafId: session.leafId } })
      return
    case 1:
      await session.append({ type: 'run_end', runEnd: { runId: 'r', outcome: step % 2 ? 'completed' : 'failed' } })
      return
    case 2:
      await session.submit(`later ${step}`, { delivery: 'follow-up' })
      return
    case 3:
      if (!session.openRun) await session.branch((await session.getContextPath()).at(-2)?.id ?? null)
      return
    case 4:
      if (session.leafId !== null) await session.setLabel(session.leafId, `label ${step}`)
      return
    case 5:
      await session.appendMessage('assistant', [
        { type: 'tool_use', toolUse: { id: `c${step}`, name: 'a', input: {} } },
      ])
      return
    case 6:
    case 7: {
      const open = await openCalls(session)
      const callId = open[Math.floor(random() * open.length)]
      if (callId === undefined) return
      if (kind === 6) await session.append({ type: 'tool_start', toolStart: { runId: 'r', callId, name: 'a' } })
      else
        await session.appendMessage('tool', [{ type: 'tool_result', toolResult: { toolUseId: callId, content: 'x' } }])
      return
    }
    default:
      await session.append({
        type: 'message',
        id: `i${step - 1}`,
        message: { role: 'assistant', content: [text(`answer ${step}`)] },
      })
  }
}

/** Calls of the open run that have no result. */
async function openCalls(session: Session): Promise<string[]> {
  const { run, path } = await foldOf(session)
  return [...path.items].flatMap((item) => {
    if (!run || item.seq < run.seq || item.type !== 'assistant') return []
    return item.parts.flatMap((part) => (part.type === 'tool_call' && !part.result ? [part.callId] : []))
  })
}
