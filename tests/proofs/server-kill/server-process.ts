// A server in a process of its own, made to be killed: for each task of its parent it hosts a session.
import { randomFrom } from '../../../scripts/figure/random.ts'
import { queueAgent } from '../queue/queue-agent.ts'
import { Stage } from '../sync/stage.ts'
import { workingAgent } from './working-agent.ts'
import type { Task, Word } from './words.ts'

process.on('message', (task: Task) => {
  void host(task).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
// Nobody is left to be hosted for.
process.once('disconnect', () => process.exit(0))
say({ type: 'loaded' })

async function host(task: Task): Promise<void> {
  const { folder, seed, play, sessionId, port, token, marks } = task
  const stage = await Stage.open({
    folder,
    random: randomFrom(seed),
    marks,
    ...(sessionId !== undefined && { sessionId }),
    ...(port !== undefined && { port }),
    ...(token !== undefined && { token }),
    ...(play === 'work' && { agent: workingAgent(marks) }),
    ...(play === 'queue' && { agent: queueAgent() }),
  })
  const { sessionId: id, port: own, token: key, url } = stage
  say({ type: 'ready', sessionId: id, port: own, token: key, url })
}

function say(word: Word): void {
  process.send?.(word)
}
