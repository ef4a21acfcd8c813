// A server in a process of its own, made to be killed: it hosts one session with a foreign agent.
import { ForeignStage, type ForeignTask } from './foreign-stage.ts'

export type ServerWord = { type: 'loaded' } | { type: 'ready'; sessionId: string; port: number; token: string }

process.on('message', (task: ForeignTask) => {
  void host(task).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
process.once('disconnect', () => process.exit(0))
say({ type: 'loaded' })

async function host(task: ForeignTask): Promise<void> {
  const { sessionId, port, token } = await ForeignStage.open(task)
  say({ type: 'ready', sessionId, port, token })
}

function say(word: ServerWord): void {
  process.send?.(word)
}
