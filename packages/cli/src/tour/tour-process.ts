// The agent of the tour, in its own process so that it can be killed. Starts a session or resumes one.
import { AgentSession, onlyModel, type Run } from '@tapetree/agent'
import { openFileStore } from '@tapetree/session/stores/file'
import { newsOf, tourModel, tourPrompt, type TourNews, type TourPace } from './tour-script.ts'

/** Its first argument. */
export interface TourTask {
  sessions: string
  cwd: string
  pace: TourPace
  /** If absent, a new one. */
  sessionId?: string
}

async function play({ sessions, cwd, pace, sessionId }: TourTask): Promise<void> {
  const store = openFileStore({ folder: sessions })
  const agent = await AgentSession.open({
    store,
    cwd,
    models: onlyModel(tourModel(pace)),
    mode: 'auto',
    ...(sessionId !== undefined && { sessionId }),
  })
  agent.subscribe((event) => newsOf(event).forEach(tell))
  tell({ type: 'session', sessionId: agent.session.id })
  const run = await (sessionId === undefined ? begin(agent) : agent.resume())
  const end = await run?.done
  await agent.close()
  await store.close()
  tell({ type: 'end', outcome: end?.outcome ?? 'nothing to resume' })
}

async function begin(agent: AgentSession): Promise<Run | undefined> {
  const outcome = await agent.prompt(tourPrompt)
  return outcome.type === 'started' ? outcome.run : undefined
}

function tell(news: TourNews): void {
  process.stdout.write(`${JSON.stringify(news)}\n`)
}

await play(JSON.parse(process.argv[2] ?? '') as TourTask)
