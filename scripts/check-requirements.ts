// Every requirement is proved by a scenario, and every sentence of the document is a requirement or says why it is none.
import { globSync, readFileSync } from 'node:fs'
import { agentModule } from '../tests/requirements/agent-module.ts'
import { agentSession } from '../tests/requirements/agent-session.ts'
import { sessionAgentRefactor } from '../tests/requirements/session-agent-refactor.ts'
import { sessionManagement } from '../tests/requirements/session-management.ts'
import { sessionManager } from '../tests/requirements/session-manager.ts'
import { findFaults } from './requirements/find-faults.ts'
import { readCitations } from './requirements/read-citations.ts'

const manifests = [agentModule, agentSession, sessionAgentRefactor, sessionManagement, sessionManager]

const citations = globSync('tests/scenarios/**/*.test.ts').flatMap((file) =>
  readCitations(file, readFileSync(file, 'utf8')),
)
const faults = findFaults(manifests, citations)
for (const fault of faults) console.error(fault)
for (const { document, requirements, outline, noBehaviour } of manifests) {
  const items = outline.reduce((sum, section) => sum + section.items.length, 0)
  console.log(
    `${document}: ${requirements.length} requirements, ${outline.length} headings, ${items} sentences, rows and lines` +
      ` (${noBehaviour.length} without behaviour)`,
  )
}
console.log(`requirements: ${citations.length} scenarios, ${faults.length} faults`)
process.exitCode = faults.length === 0 ? 0 : 1
