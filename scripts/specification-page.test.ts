import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { agentModule } from '../tests/requirements/agent-module.ts'
import { agentSession } from '../tests/requirements/agent-session.ts'
import type { Manifest } from '../tests/requirements/requirement.ts'
import { sessionAgentRefactor } from '../tests/requirements/session-agent-refactor.ts'
import { sessionManagement } from '../tests/requirements/session-management.ts'
import { sessionManager } from '../tests/requirements/session-manager.ts'

const page = 'docs/reference/specification.md'
const manifests = [agentModule, agentSession, sessionAgentRefactor, sessionManagement, sessionManager]

test('the page of the specification has every place where we settled otherwise', () => {
  const generated = specificationPage()
  if (process.env['UPDATE_SPECIFICATION_PAGE']) writeFileSync(page, generated)
  expect(withoutPadding(readFileSync(page, 'utf8'))).toBe(withoutPadding(generated))
})

function specificationPage(): string {
  const all = manifests.flatMap(({ requirements }) => requirements)
  const unmet = all.filter(({ open, excused }) => (open ?? excused) !== undefined)
  return `# The specification, and where we settled otherwise

tapetree is built after five documents. \`tests/requirements\` states each of their ${all.length} requirements in one sentence, and \`npm run requirements\`
checks that a scenario in \`tests/scenarios\` proves it and that no line of the documents is left out. This page is generated from them.
${unmet.length === 0 ? 'No requirement is open or excused.' : `Open or excused are: ${unmet.map(({ id }) => id).join(', ')}.`}

Some requirements are met in another way than the document has it, or more precisely. The decisions behind the larger differences:

| The documents | tapetree | Reason |
| --- | --- | --- |
${larger.map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n')}

${manifests.map(section).join('\n\n')}
`
}

const larger: readonly (readonly [document: string, ours: string, reason: string])[] = [
  [
    'The first system block names the product of another vendor.',
    'It is left out.',
    'We do not impersonate. A hook of an extension can add what a provider requires.',
  ],
  [
    '`queue.json` is the queue.',
    'The log is the queue; `queue.json` is a copy.',
    'A crash between two files would lose a message or deliver it twice.',
  ],
  [
    'A message is popped, then sent.',
    'One line delivers it and removes it from the queue.',
    'A crash in between would lose it.',
  ],
  [
    'Each call returns a queue with a mutex of its own.',
    'A session has one owner, and all its queues are one.',
    'Two mutexes on one file exclude nothing.',
  ],
  ['Entry ids are random UUIDs.', 'They are UUIDs of version 7.', 'They sort by time. Readers treat them as opaque.'],
  [
    'Labels and session information advance the leaf.',
    'They do not.',
    'A bookmark does not continue the conversation. Files in which they did are read correctly.',
  ],
  [
    'Compaction never cuts before an answer with calls.',
    'It does if there is no other place.',
    'Otherwise a long run without text could not be compacted. Calls and results stay together.',
  ],
  [
    'The background compaction follows the end of a turn.',
    'It is begun and appended at requests of a run.',
    'See [the decision](../decisions/2026-11-18-compaction-in-the-background.md).',
  ],
  [
    'Tool results become one message.',
    'Each is an entry as soon as it is ready.',
    'A crash loses no result. They are merged for providers that need it.',
  ],
  [
    'All queued follow-ups are drained together.',
    'They are delivered one at a time.',
    'Each gets its own answer; merging is explicit.',
  ],
  ['Observers get HTML.', 'They get Markdown.', 'A terminal cannot show HTML, and a browser must not trust it.'],
  [
    'Reasoning is never sent back.',
    'It is sent to the model that made it.',
    'Providers verify it and require it within a turn. `reasoning: never` omits it.',
  ],
  [
    'An error is removed from the context before a retry.',
    'It never enters the path.',
    'There is nothing to remove, and the log keeps the failed attempt.',
  ],
  [
    'Messages are written when they end.',
    'A draft file also keeps text while it streams.',
    'A crash in the middle of an answer loses at most the last moment.',
  ],
]

function section({ document, requirements }: Manifest): string {
  const rows = requirements.flatMap(({ id, says, settled }) =>
    settled === undefined ? [] : [`| ${cell(id.slice(document.length + 1))} | ${cell(says)} | ${cell(settled)} |`],
  )
  const head = `## ${document}\n\n| Requirement | The document | tapetree |\n| --- | --- | --- |`
  return [head, ...rows].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('<', '&lt;')
}

/** The formatter aligns the columns of tables. */
function withoutPadding(text: string): string {
  return text.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')
}
