// Deno 2.9 takes the first timer of a test file for leaked if it is cleared within the same task: this
// one is made before any test.
clearTimeout(setTimeout(() => {}));
