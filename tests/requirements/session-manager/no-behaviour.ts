import type { Excuse } from '../requirement.ts'

/** What the document says without stating behaviour, and why it does not. */
export const noBehaviour: Excuse[] = [
  {
    text: 'This document outlines the design for a `SessionManager` library in Go, replicating the core functionality of the TypeScript `pi-mono` SessionManager.',
    reason: 'It says what the document is.',
  },
  { text: 'package session', reason: 'A Go declaration without a value.' },
  { text: 'import (', reason: 'A Go declaration without a value.' },
  { text: '"time"', reason: 'A Go declaration without a value.' },
  { text: 'const (', reason: 'A Go declaration without a value.' },
  { text: '| Provider | Upstream Format | Internal `MessageEntry` Mapping |', reason: 'The names of the columns.' },
  { text: '// --- Lifecycle Management ---', reason: 'A divider.' },
  { text: '// --- Writing & Appending ---', reason: 'A divider.' },
  { text: '// --- Navigation & Branching ---', reason: 'A divider.' },
  { text: '// --- Reading & Context ---', reason: 'A divider.' },
  { text: 'Specifically:', reason: 'It only leads over to the rules below it.' },
  { text: '| Component | Role | Logic |', reason: 'The names of the columns.' },
  { text: 'package main', reason: 'A Go declaration without a value.' },
  { text: '"fmt"', reason: 'A Go declaration without a value.' },
  { text: '"log"', reason: 'A Go declaration without a value.' },
  { text: '"session" // hypothetical package', reason: 'A Go declaration without a value.' },
  { text: 'func main() {', reason: 'A Go declaration without a value.' },
]
