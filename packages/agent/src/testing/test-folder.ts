import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A folder for one test, removed after the test. */
export class TestFolder implements AsyncDisposable {
  /** Without symbolic links. */
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async make(files: Record<string, string | Uint8Array> = {}): Promise<TestFolder> {
    const folder = new TestFolder(await realpath(await mkdtemp(join(tmpdir(), 'tapetree-test-'))))
    for (const [name, content] of Object.entries(files)) await folder.write(name, content)
    return folder
  }

  at(name: string): string {
    return join(this.path, name)
  }

  async write(name: string, content: string | Uint8Array): Promise<void> {
    await mkdir(dirname(this.at(name)), { recursive: true })
    await writeFile(this.at(name), content)
  }

  async read(name: string): Promise<string> {
    return readFile(this.at(name), 'utf8')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
  }
}
