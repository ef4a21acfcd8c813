// Checks that a scenario proves every requirement and, if the specification is beside the repository, that the manifests account for
// each of its lines. `--specification <folder>` reads it from another folder.
import { globSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { agentModule } from '../tests/requirements/agent-module.ts'
import { agentSession } from '../tests/requirements/agent-session.ts'
import { sessionAgentRefactor } from '../tests/requirements/session-agent-refactor.ts'
import { sessionManagement } from '../tests/requirements/session-management.ts'
import { sessionManager } from '../tests/requirements/session-manager.ts'
import { findFaults } from './requirements/find-faults.ts'
import { readCitations } from './requirements/read-citations.ts'
import { readSpecification } from './requirements/specification.ts'

const { values } = parseArgs({ options: { specification: { type: 'string', default: '../shared/spec' } } })

const manifests = [agentModule, agentSession, sessionAgentRefactor, sessionManagement, sessionManager]
const specification = readSpecification(values.specification)
const citations = globSync('tests/scenarios/**/*.test.ts').flatMap((file) =>
  readCitations(file, readFileSync(file, 'utf8')),
)

const faults = findFaults({ manifests, citations, specification })
for (const fault of faults) console.error(fault)
for (const { document, requirements } of manifests) {
  const lines = specification?.get(document)?.reduce((sum, { statements }) => sum + statements.length, 0)
  console.log(`${document}: ${requirements.length} requirements, ${lines ?? 'no'} lines of the specification checked`)
}
const all = manifests.flatMap(({ requirements }) => requirements)
for (const { id, says, open } of all) if (open !== undefined) console.log(`open: ${id}: ${says} ${open}`)
for (const { id, says, excused } of all) if (excused !== undefined) console.log(`excused: ${id}: ${says} ${excused}`)
if (specification === undefined) {
  console.log(`There is no specification in ${values.specification}. Its lines were not checked.`)
}
console.log(
  `requirements: ${all.length}, of which ${all.filter(({ open }) => open !== undefined).length} are open and ` +
    `${all.filter(({ excused }) => excused !== undefined).length} excused; ${citations.length} scenarios, ${faults.length} faults`,
)
process.exitCode = faults.length === 0 ? 0 : 1
