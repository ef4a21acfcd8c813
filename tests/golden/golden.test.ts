import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Session } from '@tapetree/session'
import { fromDisk, sealLine, type DiskLine } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type PlaybackEventType, type Transcript } from '@tapetree/session/view'
import { openFileStore } from '@tapetree/session/stores/file'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { compareWithGolden, goldenNames, readGolden } from './golden-file.ts'
import { aborts } from './scenarios/aborts.ts'
import { crashes } from './scenarios/crashes.ts'
import { everything } from './scenarios/everything.ts'
import { limits } from './scenarios/limits.ts'
import { modelFailures } from './scenarios/model-failures.ts'
import { questions } from './scenarios/questions.ts'
import { specTable } from './scenarios/spec-table.ts'
import { toolCalls } from './scenarios/tool-calls.ts'
import { waitingMessages } from './scenarios/waiting-messages.ts'
import { Stage } from './stage.ts'

const groups = [specTable, waitingMessages, modelFailures, aborts, toolCalls, questions, limits, crashes, everything]
const names = groups.flatMap(({ scenarios }) => scenarios.map(({ name }) => name))

for (const group of groups) {
  describe(`golden sessions: ${group.title}`, () => {
    for (const { name, title, play } of group.scenarios) {
      test(`${title} (${name})`, async () => {
        const stage = new Stage(temporaryFolder())
        onTestFinished(() => stage.clear())
        await play(stage)
        compareWithGolden(name, await stage.golden())
        const context = await stage.session.getContext()
        expect(context.repairs).toEqual([])
        expect(await transcriptOf(stage.session)).toMatchObject({ run: null, permissions: [], inFlight: new Map() })
        expect(await stage.reopened((session) => session.getContext())).toEqual(context)
        await expectReadable(name)
      })
    }
  })
}

const playbackEventTypes = {
  agent_message: true,
  agent_thought: true,
  error: true,
  file_read: true,
  file_write: true,
  permission: true,
  plan: true,
  session_end: true,
  session_start: true,
  tool_call: true,
  tool_call_update: true,
  user_prompt: true,
} satisfies Record<PlaybackEventType, true>

test('the session of everything plays back as every event type', async () => {
  await using session = await openGolden('everything')
  const played = (await session.play()).events().map(({ type }) => type)
  expect([...new Set(played)].sort()).toEqual(Object.keys(playbackEventTypes))
})

test('every committed log is played', () => {
  expect(goldenNames(names).sort()).toEqual(names.toSorted())
})

/** The committed log is a session and has nothing to mend. */
async function expectReadable(name: string): Promise<void> {
  await using session = await openGolden(name)
  expect(session.damage).toEqual([])
  expect(session.openRun).toBeNull()
  expect((await session.getContext()).repairs).toEqual([])
}

/** A committed log, numbered and sealed again. */
async function openGolden(name: string): Promise<Session> {
  const folder = temporaryFolder()
  const path = join(folder, `${name}.jsonl`)
  const sealed = readGolden(name).map((line, index) => sealLine(JSON.parse(line) as DiskLine, index + 1).text)
  writeFileSync(path, sealed.map((text) => `${text}\n`).join(''))
  return openFileStore({ folder }).load(path, { readOnly: true })
}

async function transcriptOf(session: Session): Promise<Transcript> {
  let transcript = emptyTranscript()
  for await (const line of session.lines()) {
    if (line.type !== 'line') throw new Error(`Line ${line.seq} is lost.`)
    transcript = reduceTranscript(transcript, {
      type: 'line',
      line: fromDisk(JSON.parse(line.text) as DiskLine, line.seq),
    })
  }
  return transcript
}
