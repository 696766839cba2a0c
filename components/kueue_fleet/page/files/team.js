"use strict";
const asking = "What happened to it is being read ...";
const chose = () => {};
const say = (text, wrong) => {
  at("state").textContent = text;
  at("state").className = wrong ? "bad" : "";
};

async function refused(answer) {
  const text = answer ? await answer.text() : "the page does not answer";
  const wanted = answer?.headers.get("WWW-Authenticate") === "Bearer";
  at("sign-in").hidden = !wanted;
  if (wanted || answer?.status === 403) at("jobs").replaceChildren();
  say(wanted && !credentials.Authorization ? "Sign in to see your jobs." : `Not known: ${text}`, true);
}

function read(found, answer) {
  const fleet = answer.headers.get("X-Fleet") || "Jobs";
  document.title = at("fleet").textContent = fleet;
  at("sign-in").hidden = true;
  say(`As of ${new Date().toISOString().slice(0, 19)}Z, jobs: ${found.count}`, false);
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  credentials = { Authorization: `Bearer ${at("token").value.trim()}` };
  at("token").value = "";
  jobs();
});
// A tab that nobody sees asks for nothing, and a slow API server is asked less often.
(async function again() {
  const began = Date.now();
  if (at("sign-in").hidden && !document.hidden) await jobs();
  setTimeout(again, Math.max(1500, 3 * (Date.now() - began)));
})();
