// Chooses a variant until it is killed. Run by `choice.ts`.
import { openFileStore } from '@tapetree/session/stores/file'
import { join } from 'node:path'
import { chooseVariant } from '../../../packages/cli/src/variants/choose-variant.ts'
import { testIo } from '../../../packages/cli/src/testing/test-io.ts'

const [folder = '', sessionId = ''] = process.argv.slice(2)
const home = join(folder, 'home')
const env = { HOME: home, TAPETREE_HOME: folder, PATH: process.env['PATH'] }
const store = openFileStore({ folder: join(folder, 'sessions') })
await chooseVariant(sessionId, { io: testIo({ env, cwd: join(folder, 'work'), home }), store, conflicts: 'keep' })
await store.close()
