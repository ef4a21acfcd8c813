import type { Requirement } from '../requirement.ts'

/** Sections 12 and 13: the example lines and the usage example. */
export const examples = [
  {
    id: 'session-manager/12.1 header',
    quote: '{"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
  },
  {
    id: 'session-manager/12.1 user-message',
    quote:
      '{"type":"message","id":"msg-1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello"}}]}}',
  },
  {
    id: 'session-manager/12.1 assistant-message',
    quote:
      '{"type":"message","id":"msg-2","parent_id":"msg-1","timestamp":"2024-01-01T10:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Hi there!"}}]}}',
  },
  {
    id: 'session-manager/12.2 header',
    quote: '{"type":"session","id":"sess-456","version":1,"timestamp":"2024-02-01T12:00:00Z"}',
  },
  {
    id: 'session-manager/12.2 user-message',
    quote:
      '{"type":"message","id":"m-1","parent_id":null,"timestamp":"2024-02-01T12:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Read main.go"}}]}}',
  },
  {
    id: 'session-manager/12.2 tool-call',
    quote:
      '{"type":"message","id":"m-2","parent_id":"m-1","timestamp":"2024-02-01T12:00:02Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"call_abc","name":"read_file","input":{"path":"main.go"}}}]}}',
  },
  {
    id: 'session-manager/12.2 tool-result',
    quote:
      '{"type":"message","id":"m-3","parent_id":"m-2","timestamp":"2024-02-01T12:00:03Z","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"call_abc","content":"package main..."}}]}}',
  },
  {
    id: 'session-manager/13 header-line',
    quote:
      '// 1. Initialize or continue a session\n// JSONL: {"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/path/to/project"}',
  },
  {
    id: 'session-manager/13 new-manager',
    quote: 'mgr := session.NewManager("./sessions")',
    settled: 'DESIGN 6: `openFileStore({ folder })`.',
  },
  {
    id: 'session-manager/13 continue-recent',
    quote: 's, err := mgr.ContinueRecent()',
  },
  {
    id: 'session-manager/13 new-if-there-is-none',
    quote: 'if err != nil {\ns, _ = mgr.New("", "")',
  },
  {
    id: 'session-manager/13 close',
    quote: 'defer s.Close()',
  },
  {
    id: 'session-manager/13 user-line',
    quote:
      '// 2. Append a user message using Role constant\n// JSONL: {"type":"message","id":"msg-1","parent_id":null,"timestamp":"...","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello, Agent!"}}]}}',
  },
  {
    id: 'session-manager/13 append-user-message',
    quote:
      'userEntryID, _ := s.AppendMessage(session.RoleUser, []session.Content{\n{Type: session.ContentTypeText, Text: &session.TextContent{Content: "Hello, Agent!"}},',
  },
  {
    id: 'session-manager/13 context-at-user-message',
    quote: '// 3. Get context for the LLM\n// (Returns msg-1 based on current leaf)',
  },
  {
    id: 'session-manager/13 context-length',
    quote: 'history, _ := s.GetContext()\nfmt.Printf("Context has %d messages\\n", len(history))',
  },
  {
    id: 'session-manager/13 assistant-line',
    quote:
      '// 4. Simulate an assistant response using Role constant\n// JSONL: {"type":"message","id":"msg-2","parent_id":"msg-1","timestamp":"...","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Hello! How can I help?"}}]}}',
  },
  {
    id: 'session-manager/13 append-assistant-message',
    quote:
      's.AppendMessage(session.RoleAssistant, []session.Content{\n{Type: session.ContentTypeText, Text: &session.TextContent{Content: "Hello! How can I help?"}},',
  },
  {
    id: 'session-manager/13 branch-moves-leaf',
    quote: '// 5. Branching example: go back to user message\n// Updates internal leaf pointer to msg-1',
  },
  {
    id: 'session-manager/13 branch',
    quote: 'err = s.Branch(userEntryID)',
  },
  {
    id: 'session-manager/13 branched-line',
    quote:
      'if err == nil {\n// JSONL: {"type":"message","id":"msg-3","parent_id":"msg-1","timestamp":"...","message":{"role":"user","content":[{"type":"text","text":{"content":"Actually, tell me a joke."}}]}}',
  },
  {
    id: 'session-manager/13 append-on-branch',
    quote:
      's.AppendMessage(session.RoleUser, []session.Content{\n{Type: session.ContentTypeText, Text: &session.TextContent{Content: "Actually, tell me a joke."}},',
  },
  {
    id: 'session-manager/13 label-line',
    quote:
      '// 6. Labeling an entry\n// JSONL: {"type":"label","id":"lbl-1","parent_id":"msg-3","target_id":"msg-1","label":"first-greeting","timestamp":"..."}',
    settled: 'DESIGN 7: our labels do not advance the leaf; this line, which does, is read correctly.',
  },
  {
    id: 'session-manager/13 set-label',
    quote: 's.SetLabel(userEntryID, "first-greeting")',
  },
  {
    id: 'session-manager/13 compaction-of-the-start',
    quote:
      '// 7. Compaction example\n// In this scenario, we decide to summarize msg-1 and msg-2, keeping only msg-3 and forward.',
  },
  {
    id: 'session-manager/13 append-compaction-arguments',
    quote: '// We call AppendCompaction with the summary and the ID of the first message to keep.',
  },
  {
    id: 'session-manager/13 compaction-line',
    quote:
      '// JSONL: {"type":"compaction","id":"comp-1","parent_id":"lbl-1","summary":"User greeted and then asked for a joke.","first_kept_entry_id":"msg-3","tokens_before":1500,"timestamp":"..."}',
  },
  {
    id: 'session-manager/13 append-compaction',
    quote: 's.AppendCompaction("User greeted and then asked for a joke.", "msg-3", 1500)',
  },
  {
    id: 'session-manager/13 summary-comes-first',
    quote: '// 8. Resulting Context\n// GetContext() will now return:\n// 1. The Compaction Summary (from comp-1)',
  },
  {
    id: 'session-manager/13 kept-message-comes-second',
    quote: '// 2. The message with id "msg-3" (the first_kept_entry_id)',
  },
  {
    id: 'session-manager/13 context-after-compaction',
    quote: 'history, _ = s.GetContext()',
  },
  {
    id: 'session-manager/13 context-names-its-entries',
    quote:
      'for _, entry := range history {\nif entry.Type == session.TypeCompaction {\nfmt.Println("Compaction summary included")\n} else if entry.ID == "msg-3" {\nfmt.Println("Recent message included")',
    settled:
      'Each message of the context names the entry it comes from; the summary is a message with role `compactionSummary`.',
  },
] as const satisfies Requirement[]
