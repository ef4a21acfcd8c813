import { newId } from '@tapetree/session'
import { writePlainSession } from '../../../bench/session/generate.ts'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteView } from '../docs-site/site-browser.ts'
import { blockedJourney } from './session-blocked.ts'
import { longSessionJourney, streamingJourney, type LongSession } from './session-long.ts'
import { jobsJourney } from './session-jobs.ts'
import type { SessionJourney } from './session-journey.ts'
import { composerJourney, queueJourney } from './session-messages.ts'
import { rewindJourney } from './session-rewind.ts'
import { callsJourney, raceJourney } from './session-requests.ts'

/** Everything that a person does on the session screen. */
export async function sessionJourneys(given: Omit<SessionJourney, 'views'>, long: LongSession): Promise<void> {
  const journey = { ...given, views: new Map<string, SiteView>() }
  try {
    for (const [name, run] of Object.entries(journeys)) {
      await run(journey, long)
      journey.say(name)
    }
  } finally {
    for (const view of journey.views.values()) await view[Symbol.asyncDispose]()
  }
}

const journeys: Record<string, (journey: SessionJourney, long: LongSession) => Promise<void>> = {
  'scrolled a very long session': longSessionJourney,
  'streamed an answer': streamingJourney,
  'changed the queue': queueJourney,
  'composed with commands, files and attachments': composerJourney,
  'two browsers answered at once': raceJourney,
  'looked at calls': callsJourney,
  'followed and stopped a background command': jobsJourney,
  'applied a file that the sandbox had taken back': blockedJourney,
  'went back with the files, and compared two branches': rewindJourney,
}

/** To be called before the server starts. */
export async function writeLongSession(home: FakeHome, messages: number): Promise<LongSession> {
  const places = placesOf(home)
  const long = { id: newId(), messages, cwd: home.cwd }
  writePlainSession(places.sessions, long)
  // Closing writes the checkpoint, as every ordinary session has one.
  await using store = await openStore(places)
  await using session = await store.open(long.id)
  await session.appendSessionInfo('A very long session')
  return long
}
