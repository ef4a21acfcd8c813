import type { Session } from '@tapetree/session'
import { z } from 'zod'
import { defineTool, type Tool } from '../tools/tool.ts'
import { script, type ScriptBuilder } from './scripted-model.ts'
import { TestFolder } from './test-folder.ts'

/** A folder that an agent changes with the tool `put`, and whose files are recorded. Removed after the test. */
export class RecordedFolder implements AsyncDisposable {
  /** Without symbolic links. */
  readonly path: string
  readonly snapshotsFolder: string
  readonly #folder: TestFolder
  readonly #stores: TestFolder

  private constructor(folder: TestFolder, stores: TestFolder) {
    this.#folder = folder
    this.#stores = stores
    this.path = folder.path
    this.snapshotsFolder = stores.path
  }

  static async make(files: Record<string, string>): Promise<RecordedFolder> {
    return new RecordedFolder(await TestFolder.make(files), await TestFolder.make())
  }

  /** For the options of an agent. */
  get agent(): { cwd: string; tools: Tool[]; snapshotsFolder: string } {
    const put = defineTool({
      name: 'put',
      description: 'Writes a file.',
      schema: z.strictObject({ name: z.string(), content: z.string() }),
      run: async ({ name, content }) => {
        await this.write(name, content)
        return { content: 'done' }
      },
    })
    return { cwd: this.path, tools: [put], snapshotsFolder: this.snapshotsFolder }
  }

  read(name: string): Promise<string> {
    return this.#folder.read(name)
  }

  write(name: string, content: string): Promise<void> {
    return this.#folder.write(name, content)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]()
    await this.#stores[Symbol.asyncDispose]()
  }
}

/** Answers two prompts, and changes `a.txt` with the tool `put` in each. */
export function twoChanges(): ScriptBuilder {
  return script()
    .toolCall('c1', 'put', { name: 'a.txt', content: 'one\n' })
    .step()
    .text('First.')
    .step()
    .toolCall('c2', 'put', { name: 'a.txt', content: 'one\ntwo\n' })
    .step()
    .text('Second.')
}

/** The id of the newest message of the user in the context. */
export async function newestUserMessage(session: Session): Promise<string> {
  const path = await session.getContextPath()
  return path.findLast((entry) => entry.type === 'message' && entry.message.role === 'user')?.id ?? ''
}
