/** A small project of one language, with a change that breaks a type in another file. */
export interface TriedProject {
  name: string
  /** Of npm, installed into the project. */
  packages: readonly string[]
  /** A program that must be on the path, and the Debian package that has it. */
  program?: { name: string; debian: string | undefined }
  files: Readonly<Record<string, string>>
  /** The file that is edited. */
  file: string
  good: string
  bad: string
  /** Appears in the message about the bad text. */
  says: RegExp
}

const typescript = {
  files: {
    'tsconfig.json':
      '{ "compilerOptions": { "strict": true, "noEmit": true, "types": [], "jsx": "preserve" }, "include": ["*.ts", "*.tsx"] }\n',
    'jsx.d.ts': 'declare namespace JSX {\n  interface IntrinsicElements {\n    p: object\n  }\n}\n',
    'lib.ts': 'export function double(value: number): number {\n  return value * 2\n}\n',
  },
  file: 'main.tsx',
  good: "import { double } from './lib.js'\nexport const four: number = double(2)\nexport const shown = <p>{four}</p>\n",
  bad: "import { double } from './lib.js'\nexport const four: string = double(2)\nexport const shown = <p>{four}</p>\n",
  says: /not assignable/,
}

export const projects: readonly TriedProject[] = [
  { name: 'TypeScript 7', packages: ['typescript@7.0.2'], ...typescript },
  { name: 'TypeScript 6', packages: ['typescript@6.0.3', 'typescript-language-server@6.0.2'], ...typescript },
  { name: 'TypeScript 5', packages: ['typescript@5.9.3', 'typescript-language-server@6.0.2'], ...typescript },
  // Cannot be asked: it publishes syntax errors first, and then type errors.
  {
    name: 'TypeScript 5 with an older server',
    packages: ['typescript@5.9.3', 'typescript-language-server@4.3.4'],
    ...typescript,
  },
  {
    name: 'pyright',
    packages: ['pyright@1.1.414'],
    files: {
      'pyproject.toml': '[project]\nname = "tried"\n',
      'lib.py': 'def double(value: int) -> int:\n    return value * 2\n',
    },
    file: 'main.py',
    good: 'from lib import double\n\nfour: int = double(2)\n',
    bad: 'from lib import double\n\nfour: str = double(2)\n',
    says: /str/,
  },
  {
    name: 'gopls',
    packages: [],
    program: { name: 'gopls', debian: 'gopls' },
    files: {
      'go.mod': 'module tried\n\ngo 1.15\n',
      'lib.go': 'package main\n\nfunc double(value int) int {\n\treturn value * 2\n}\n',
    },
    file: 'main.go',
    good: 'package main\n\nfunc main() {\n\tvar four int = double(2)\n\tprintln(four)\n}\n',
    bad: 'package main\n\nfunc main() {\n\tvar four string = double(2)\n\tprintln(four)\n}\n',
    says: /string/,
  },
  {
    name: 'clangd',
    packages: [],
    program: { name: 'clangd', debian: 'clangd' },
    files: { 'compile_flags.txt': '-std=c11\n', 'lib.h': 'int twice(int value);\n' },
    file: 'main.c',
    good: '#include "lib.h"\n\nint main(void) {\n  return twice(2);\n}\n',
    bad: '#include "lib.h"\n\nint main(void) {\n  return twice("2", 3);\n}\n',
    says: /argument/,
  },
  {
    name: 'rust-analyzer',
    packages: [],
    program: { name: 'rust-analyzer', debian: undefined },
    files: {
      'Cargo.toml': '[package]\nname = "tried"\nversion = "0.1.0"\nedition = "2021"\n',
      'src/lib.rs': 'pub fn double(value: i32) -> i32 {\n    value * 2\n}\n',
    },
    file: 'src/main.rs',
    good: 'fn main() {\n    let four: i32 = tried::double(2);\n    println!("{four}");\n}\n',
    bad: 'fn main() {\n    let four: &str = tried::double(2);\n    println!("{four}");\n}\n',
    says: /str/,
  },
]
