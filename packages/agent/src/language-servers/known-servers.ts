import { access, readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { findProgram, isProgram } from '../util/find-program.ts'
import { isInside } from '../util/is-inside.ts'

/** A language server that a project has. */
export interface FoundServer {
  name: string
  /** Absolute. */
  file: string
  args: readonly string[]
  /** The folder that it works on: the nearest one above the file that has a configuration. */
  root: string
}

interface KnownServer {
  name: string
  /** By file extension. */
  languages: Readonly<Record<string, string>>
  /** Files that mark the root of a project. */
  markers: readonly string[]
  program: (place: { root: string; workspace: string; path: string | undefined }) => Promise<Program | undefined>
}

type Program = Pick<FoundServer, 'file' | 'args'>

const known: readonly KnownServer[] = [
  {
    name: 'typescript',
    languages: {
      '.ts': 'typescript',
      '.mts': 'typescript',
      '.cts': 'typescript',
      '.tsx': 'typescriptreact',
      '.js': 'javascript',
      '.mjs': 'javascript',
      '.cjs': 'javascript',
      '.jsx': 'javascriptreact',
    },
    markers: ['tsconfig.json', 'jsconfig.json'],
    program: typescriptServer,
  },
  {
    name: 'pyright',
    languages: { '.py': 'python', '.pyi': 'python' },
    markers: ['pyproject.toml', 'pyrightconfig.json', 'setup.py', 'setup.cfg', 'requirements.txt'],
    program: (place) => projectProgram('pyright-langserver', ['--stdio'], place),
  },
  {
    name: 'gopls',
    languages: { '.go': 'go' },
    markers: ['go.mod', 'go.work'],
    program: (place) => installedProgram('gopls', [], place),
  },
  {
    name: 'rust-analyzer',
    languages: { '.rs': 'rust' },
    markers: ['Cargo.toml'],
    program: (place) => installedProgram('rust-analyzer', [], place),
  },
  {
    name: 'clangd',
    languages: { '.c': 'c', '.h': 'c', '.cc': 'cpp', '.cpp': 'cpp', '.cxx': 'cpp', '.hpp': 'cpp' },
    markers: ['compile_commands.json', 'compile_flags.txt', '.clangd'],
    program: (place) => installedProgram('clangd', [], place),
  },
]

/** The server for a file, by what the project has. Undefined if there is none, or if the file is outside of the workspace. */
export async function findServer(
  file: string,
  { workspace, path }: { workspace: string; path: string | undefined },
): Promise<FoundServer | undefined> {
  const server = serverOf(file)
  if (!server || !isInside(file, workspace)) return undefined
  const root = await nearest(dirname(file), workspace, server.markers)
  const program = root === undefined ? undefined : await server.program({ root, workspace, path })
  if (root === undefined || !program) return undefined
  return { name: server.name, root, ...program }
}

/** Of the protocol, by extension: one server has files of several languages. */
export function languageIdOf(file: string): string | undefined {
  return serverOf(file)?.languages[extname(file)]
}

function serverOf(file: string): KnownServer | undefined {
  return known.find(({ languages }) => Object.hasOwn(languages, extname(file)))
}

/** TypeScript has its own server since version 7. */
async function typescriptServer(place: {
  root: string
  workspace: string
  path: string | undefined
}): Promise<Program | undefined> {
  for (const folder of upwards(place.root, place.workspace)) {
    const major = await majorVersion(join(folder, 'node_modules/typescript/package.json'))
    if (major === undefined) continue
    const tsc = join(folder, 'node_modules/.bin/tsc')
    if (major >= 7 && (await isProgram(tsc))) return { file: tsc, args: ['--lsp', '--stdio'] }
    return projectProgram('typescript-language-server', ['--stdio'], place)
  }
  return undefined
}

async function majorVersion(manifest: string): Promise<number | undefined> {
  try {
    const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { version?: unknown }
    return Number.parseInt(String(version), 10)
  } catch {
    return undefined // not installed here
  }
}

/** Installed in the project, or for the user. */
async function projectProgram(
  name: string,
  args: readonly string[],
  { root, workspace, path }: { root: string; workspace: string; path: string | undefined },
): Promise<Program | undefined> {
  for (const folder of upwards(root, workspace)) {
    const file = join(folder, 'node_modules/.bin', name)
    if (await isProgram(file)) return { file, args }
  }
  return installedProgram(name, args, { path })
}

async function installedProgram(
  name: string,
  args: readonly string[],
  { path }: { path: string | undefined },
): Promise<Program | undefined> {
  const file = await findProgram(name, path)
  return file === undefined ? undefined : { file, args }
}

async function nearest(from: string, workspace: string, markers: readonly string[]): Promise<string | undefined> {
  for (const folder of upwards(from, workspace)) {
    for (const marker of markers) if (await exists(join(folder, marker))) return folder
  }
  return undefined
}

/** From a folder to the workspace, both included. */
function upwards(from: string, workspace: string): string[] {
  const folders: string[] = []
  for (let folder = from; isInside(folder, workspace); folder = dirname(folder)) {
    folders.push(folder)
    if (folder === dirname(folder)) break
  }
  return folders
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
